"""A hookturn engine that keeps the AGENT-HOOKS-0.1 contract for the interceptors registered with it."""

from __future__ import annotations

from ...engine.engine import Engine
from .interceptors import Interception, approver
from .records import PROFILES, ContractComposition, Recorder
from .wire import POINTS, jcs_sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

UNBOUNDED = 1e8
"""Seconds that stand for no time limit."""


class Binding:
    """One interceptor and where it is asked.

    Parameters:
        interceptor: an object with ``intercept(context)``.
        name: its name in records; it must be no payload.
        at: the interception points.
        timeout: seconds; None for no limit. Only an asynchronous interceptor can be stopped.
    """

    __slots__ = ("at", "interceptor", "name", "timeout")

    def __init__(
        self, interceptor: Any, name: str = "", at: Iterable[str] = POINTS, timeout: float | None = 5.0
    ) -> None:
        self.interceptor = interceptor
        self.name = name
        self.at = tuple(at)
        self.timeout = timeout


class Host:
    """An engine whose sessions keep the contract, and their records.

    Use ``engine.session(...)`` as always. Before each request to the model, fire
    ``session.event(MODEL_REQUEST, {"model": ..., "messages": [...]}, accepts=MODEL_ACCEPTS)``.

    Parameters:
        interceptors: interceptors or Bindings, in the order in which they are asked.
        mode: ``enforce`` or ``evaluate_only``.
        profile: the composition profile by its name in the specification.
        knobs: the profile's knobs: on_approval, on_transform_conflict, on_disagreement.
        resolver: the approval resolver, or None.
        resolver_timeout: its time limit in seconds if it is asynchronous; None for no limit.
        redactor: what a resolver may see of a context, or None for all of it.
        identity_provider: ``jcs-sha256``, None, or the name of ``provider``.
        provider: a function that identifies a context, for a name of your own.
        tools: names of the agent's tools.
        declaration: version of the host declaration that all this comes from, or "".
        keep: how many records to keep; None for all.
        sink: called with each record.
        engine: more keyword arguments of ``Engine``.

    Attributes:
        engine: the engine.
        recorder: the plugin that keeps the records.
    """

    plugin_class = Interception
    """What makes a plugin of an interceptor."""

    def __init__(
        self,
        interceptors: Iterable[Any] = (),
        *,
        mode: str = "enforce",
        profile: str = "sequential/first_deny",
        knobs: dict[str, str] | None = None,
        resolver: Any = None,
        resolver_timeout: float | None = 300.0,
        redactor: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        identity_provider: str | None = "jcs-sha256",
        provider: Callable[[dict[str, Any]], str] | None = None,
        tools: Iterable[str] = (),
        declaration: str = "",
        keep: int | None = None,
        sink: Callable[[dict[str, Any]], None] | None = None,
        engine: dict[str, Any] | None = None,
    ) -> None:
        if mode not in ("enforce", "evaluate_only"):
            raise ValueError(f"mode must be 'enforce' or 'evaluate_only', got {mode!r}")
        if profile not in PROFILES:
            raise ValueError(f"unknown profile {profile!r}; one of {', '.join(PROFILES)}")
        if identity_provider == "jcs-sha256":
            provider = jcs_sha256
        elif identity_provider is not None and (provider is None or identity_provider.startswith("jcs")):
            raise ValueError(
                f"the identity provider {identity_provider!r} needs a function, and a name that is not jcs..."
            )
        composition = ContractComposition(
            PROFILES[profile],
            provider=provider if identity_provider is not None else None,
            redactor=redactor,
            tools=tools,
            approval_seconds=UNBOUNDED if resolver_timeout is None else resolver_timeout,
            **(knobs or {}),
        )
        self.recorder = Recorder(provider=identity_provider, declaration=declaration, keep=keep, sink=sink)
        self.engine = Engine(
            [self.recorder],
            composition=composition,
            approver=approver(resolver) if resolver is not None else None,
            mode="monitor" if mode == "evaluate_only" else "enforce",
            **(engine or {}),
        )
        for number, given in enumerate(interceptors):
            binding = given if isinstance(given, Binding) else Binding(given)
            self.engine.register(
                self.plugin_class(binding.interceptor, at=binding.at, composed=True),
                binding.name or f"interceptor-{number}",
                options={"timeout": UNBOUNDED if binding.timeout is None else binding.timeout},
            )

    @property
    def records(self) -> list[dict[str, Any]]:
        """The interception records so far."""
        return list(self.recorder.records)
