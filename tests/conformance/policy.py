"""A foreign policy engine as one hook: agent-control-spec (a Rust runtime for Rego) behind ``Interception``.

Run in an environment of its own, because agent-control-spec pins another
version of the SDK than the kit needs: ``make conformance-policy``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from agent_control_spec import AcsInterceptor, ActivatedPolicy, AsyncAcsInterceptor

from hookturn import Engine, Tool, hookimpl
from hookturn.hosts.agent_hooks import Interception

MANIFEST = """
agent_control_specification_version: 0.4.0-alpha.1
policies:
  shell:
    type: rego
    bundle: ./shell.rego
    query: data.shell.verdict
intervention_points:
  pre_tool_call:
    policy_target: $.tool_call.args
    tool_name_from: $.tool_call.name
    policy:
      id: shell
tools:
  bash:
    type: Tool
    id: bash
"""
REGO = """
package shell
import rego.v1

default verdict := {"decision": "allow"}

command := input.policy_target.value.command

verdict := {"decision": "deny", "reason": "no_recursive_delete", "message": "Remove files one by one."} if {
    contains(command, "rm -rf")
} else := {"decision": "escalate", "reason": "push", "message": "A push needs a yes."} if {
    startswith(command, "git push")
} else := {"decision": "transform", "reason": "quiet", "transform": {"path": "$target.command", "value": "ls -q"}} if {
    command == "ls"
}
"""


def main() -> int:
    """Let the policy decide on some calls; 0 only if each verdict had its effect."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "shell.yaml")
        path.write_text(MANIFEST)
        Path(folder, "shell.rego").write_text(REGO)
        asked: list[str] = []
        codes: list[str] = []
        ran: list[str] = []

        def approve(request) -> bool:
            asked.append(request.args["command"])
            return "--force" not in request.args["command"]

        class Watch:
            @hookimpl
            def on_outcome(self, event) -> None:
                if event.outcome.denied:
                    codes.append(event.outcome.code)

        def bash(command: str) -> str:
            ran.append(command)
            return "done"

        policies = {
            "AcsInterceptor": AcsInterceptor(str(path)),
            "AsyncAcsInterceptor": AsyncAcsInterceptor(ActivatedPolicy(str(path))),
        }
        for name, policy in policies.items():
            asked.clear()
            ran.clear()
            codes.clear()
            plugin = Interception(policy, at=["pre_tool_call"])
            engine = Engine([("acs", plugin), Watch()], approver=approve, tools={"bash": Tool("bash")})
            with engine, engine.session(cwd=folder) as session, session.turn() as turn:
                results = {
                    command: turn.call_tool("bash", {"command": command}, bash)
                    for command in ("pwd", "ls", "rm -rf /", "git push", "git push --force")
                }
                unknown = turn.call_tool("other", {"command": "x"}, bash)
            said = {command: result.status for command, result in results.items()}
            print(f"{name}: {said}, ran {ran}, asked about {asked}")
            assert said == {
                "pwd": "ok",
                "ls": "ok",
                "rm -rf /": "denied",
                "git push": "ok",
                "git push --force": "denied",
            }
            assert ran == ["pwd", "ls -q", "git push"]
            assert asked == ["git push", "git push --force"]
            assert results["rm -rf /"].denied_by == "acs" and "one by one" in results["rm -rf /"].value
            assert unknown.status == "denied"
            assert codes == ["no_recursive_delete", "runtime_error:tool_unknown"]
            if hasattr(policy, "close"):
                policy.close()
    print("every verdict of the policy engine had its effect")
    return 0


if __name__ == "__main__":
    sys.exit(main())
