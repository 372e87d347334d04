"""The conformance kit's harness for hookturn: scripts the model and the tools, and translates. It decides nothing.

Everything else is hookturn itself: ``Host`` builds an ordinary ``Engine``, an
ordinary ``AsyncSession`` fires the timings, and the composition in the
engine's fold decides. Host declarations go through hookturn's own loader.
"""

from __future__ import annotations

from typing import Any

from agent_hooks import DeclarationError as TheirDeclarationError
from agent_hooks import Finding, HostSurface
from agent_hooks.ctk import Capability, RunOutcome, RunRecord
from loguru import logger

from hookturn.hosts.agent_hooks import MODEL_ACCEPTS, MODEL_REQUEST, Binding, Host
from hookturn.hosts.agent_hooks.declaration import DeclarationError, Registry, Surface, from_declaration
from hookturn.spec.record import thaw

logger.disable("hookturn")  # vectors make hooks fail on purpose

CAPABILITIES = ("bigint_json", "host_declaration", "int64_json", "model_calls", "tool_calls")


class Harness:
    """What the kit's runner drives (its ``Harness`` protocol)."""

    name = "hookturn"
    capabilities = {Capability(name) for name in CAPABILITIES}
    tool_seam_host_error = "continue"

    host_class = Host
    """The mutants replace it."""

    def __init__(self) -> None:
        self.host: Host | None = None
        self.scenario: Any = None
        self.invoked: list[dict[str, Any]] = []

    # -- setting up -----------------------------------------------------------------------------

    def setup(
        self,
        scenario: Any,
        interceptors: list[Any],
        resolver: Any,
        mode: Any,
        composition: Any = None,
        identity_provider: str | None = "jcs-sha256",
        redact_for_approval: list[str] | None = None,
    ) -> None:
        """Build a host from a vector's fields."""
        wire = composition.to_wire() if composition is not None else {"profile": "sequential/first_deny"}
        profile = wire.pop("profile")
        self._start(
            scenario,
            self.host_class(
                [Binding(item, f"interceptor-{index}") for index, item in enumerate(interceptors)],
                mode=mode.value,
                profile=profile,
                knobs=wire,
                resolver=resolver,
                redactor=_redactor(redact_for_approval),
                identity_provider=identity_provider,
                provider=_fault if identity_provider == "ctk-fault" else None,
                tools=scenario.tools,
            ),
        )

    def host_surface(self) -> HostSurface:
        """What the kit checks a document against when it proves its own four paths."""
        return HostSurface.from_capabilities(sorted(CAPABILITIES), self.tool_seam_host_error)

    def setup_declared(self, scenario: Any, document: dict[str, Any], registry: Any) -> None:
        """Build a host from a declaration by hookturn's loader.

        The kit's registry has no public way to what is registered in it, only the names; the
        functions behind them are fetched by its private accessors, and handed to ours.
        """
        names = registry.names()
        ours = Registry(
            {kind: registry._kind_resolver(kind) for kind in names["kinds"]},
            identity_providers={name: registry._identity_fn(name) for name in names["identity_providers"]},
            approval_resolvers={
                name: registry._approval_resolver_ref(name) for name in names["approval_resolvers"]
            },
            approval_redactors={name: registry._redactor_fn(name) for name in names["approval_redactors"]},
            surface=Surface(CAPABILITIES, tool_seam_host_error=self.tool_seam_host_error),
        )
        try:
            host = from_declaration(document, ours, tools=scenario.tools, host_class=self.host_class)
        except DeclarationError as error:
            findings = [Finding(pointer=pointer, detail=detail) for pointer, detail in error.findings]
            raise TheirDeclarationError(error.code, findings, error.accepted) from error
        self._start(scenario, host)

    def _start(self, scenario: Any, host: Host) -> None:
        self.scenario = scenario
        self.host = host
        self.invoked = []

    def teardown(self) -> None:
        """Let go of the host."""
        if self.host is not None:
            self.host.engine.close()
        self.host = self.scenario = None

    # -- running --------------------------------------------------------------------------------

    async def run(self) -> RunRecord:
        """Run the scripted conversation as any host of hookturn's would."""
        assert self.host is not None
        final: str | None = None
        done = False
        async with self.host.engine.session(agent="ctk-agent", host="hookturn") as session:
            if not session.blocked_by:
                given = self.scenario.input
                prompt = await session.submit(given["content"], origin=given["role"])
                if prompt.goes_on:
                    async with session.turn() as turn:
                        done, final = await self._turn(session, turn, given["role"], prompt.text)
            await session.end("complete" if done else "error")
        records = self.host.records
        return RunRecord(
            outcome=RunOutcome.COMPLETED if done else RunOutcome.BLOCKED,
            final_output=final,
            tool_invocations=self.invoked,
            identities=[(record["input_identity"], record["enforced_identity"]) for record in records],
            records=records,
        )

    async def _turn(self, session: Any, turn: Any, role: str, text: str) -> tuple[bool, str | None]:
        """One turn; (whether it ran to its end, the final answer)."""
        messages: list[Any] = [{"role": role, "content": text}]
        for answer in self.scenario.model_script:
            await turn.system_prompt([])
            request = {"model": "mock", "messages": messages}
            asked = await session.event(MODEL_REQUEST, request, accepts=MODEL_ACCEPTS)
            if asked.denied:
                return False, None
            messages = thaw(asked.event.properties["messages"])
            response = await turn.model_response(
                answer.content or "",
                tool_calls=[
                    {"id": call["id"], "tool": call["name"], "args": call["args"]}
                    for call in answer.tool_calls
                ],
                stop_reason=answer.finish_reason,
                model="mock",
            )
            if not response.goes_on:
                return False, None
            if not answer.tool_calls:
                end = await turn.complete(response.text)
                return (False, None) if end.blocked_by else (True, end.text)
            messages.append({"role": "assistant", "content": response.text})
            for call in answer.tool_calls:
                result = await turn.call_tool(
                    call["name"], call["args"], self._tool(call["name"]), call_id=call["id"]
                )
                messages.append({"role": "tool", "content": thaw(result.value)})
        return True, None

    def _tool(self, name: str) -> Any:
        def run(**args: Any) -> Any:
            value, is_error = self.scenario.tools[name].invoke(args)
            self.invoked.append({"name": name, "args": args})
            if is_error:
                raise RuntimeError(value)
            return value

        return run


def _fault(context: dict[str, Any]) -> str:
    raise RuntimeError("an identity provider that fails, as the vector asks for")


def _redactor(paths: list[str] | None) -> Any:
    if not paths:
        return None
    from agent_hooks.ctk import redact_paths

    return lambda context: redact_paths(context, paths)
