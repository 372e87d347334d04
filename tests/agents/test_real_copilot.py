"""The real GitHub Copilot CLI against a scripted model: what our hooks decide is what happens."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "fake_model"))

from agent_programs import COPILOT
from agent_user import ScriptedUser

from hookturn.agents.copilot import hooks as copilot

pytestmark = pytest.mark.agents

RUN = [{"shell": "echo hello > ran.txt; cat ran.txt"}, {"text": "Finished."}]


def task(prompt, agent="general-purpose"):
    args = {"description": "d", "prompt": prompt, "agent_type": agent, "name": "helper", "mode": "sync"}
    return {"tool": "task", "args": args}


class User(ScriptedUser):
    """A user of Copilot CLI whose hook file calls the bridge, by camelCase or PascalCase keys."""

    def __init__(self, base, keys, **more):
        super().__init__(base, **more)
        self.keys = keys
        events = copilot.PASCAL if keys == "PascalCase" else self.installed
        entry = {"type": "command", "bash": f"{self.bridge} copilot --timeout 30", "timeoutSec": 30}
        hooks = {event: [entry] for event in events}
        self.write(".copilot/hooks/hookturn.json", {"version": 1, "hooks": hooks})

    installed = tuple(event for event, row in copilot.EVENTS.items() if row.install)

    def copilot(self, script, code=0, **more):
        out = self.run(COPILOT, script, **more)
        assert out.code == code, (out.code, out.stdout, out.stderr)
        return out


@pytest.fixture(params=["camelCase", "PascalCase"])
def user(tmp_path, request):
    return User(tmp_path, request.param)


@pytest.fixture
def camel(tmp_path):
    return User(tmp_path, "camelCase")


def test_a_session_is_seen_from_start_to_end(user):
    out = user.copilot(RUN)
    assert "Finished." in out.stdout and user.ran()
    print(user.timings)
    assert [timing for timing in user.timings if timing != "on_event"] == [
        "on_session_start", "on_message_received", "on_user_prompt_submit", "on_turn_start", "system_prompt",
        "on_tool_call_start", "pre_tool_execution", "on_permission_request", "post_tool_execution",
        "system_prompt", "on_turn_complete", "post_turn", "on_session_end",
    ]  # fmt: skip
    assert len({event["session_id"] for event in user.events}) == 1
    (post,) = user.of("post_tool_execution")
    (pre,) = user.of("pre_tool_execution")
    (asked,) = user.of("on_permission_request")
    assert pre["call_id"] == asked["call_id"] == post["call_id"]
    assert (post["status"], post["kind"], post["turn"]) == ("ok", "bash", 1)
    assert post["result_text"].startswith("hello\n")
    assert user.of("on_session_end")[0]["reason"] == "complete"
    assert [(row["timing"], row["status"]) for row in user.audit] == [("post_tool_execution", "ok")]
