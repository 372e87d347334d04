"""A process that is killed while hooks hear of a call's end: whoever comes next tells them again."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from hookturn import Engine, hookimpl

KILLED = """
    import os, signal, sys
    from hookturn import Engine, hookimpl

    class Killer:
        @hookimpl
        def post_tool_execution(self, event):
            os.kill(os.getpid(), signal.SIGKILL)

    session = Engine([Killer()], state_dir=sys.argv[1]).attach("s")
    session.start()
    turn = session.turn()
    turn.begin()
    if sys.argv[2] == "begun":
        turn.begin_tool("c1", "Bash", {"command": "ls"})
    turn.end_tool("c1", "error", "gone", error="boom", tool="Bash", args={"command": "ls"})
"""


class Hears:
    def __init__(self):
        self.ends = []
        self.turns = []

    @hookimpl
    def post_tool_execution(self, event):
        self.ends.append((event.call_id, event.tool, event.command, event.status, event.result))

    @hookimpl
    def on_turn_complete(self, event):
        self.turns.append([(call["call_id"], call["status"]) for call in event.tool_calls])


@pytest.fixture(params=["begun", "never begun"])
def left(request, tmp_path):
    """A session that a process left behind which was killed amid the hooks of a call's end."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path), request.param],
        capture_output=True,
        text=True,
    )
    assert done.returncode == -9, done.stderr
    hears = Hears()
    return Engine([hears], state_dir=tmp_path).attach("s"), hears


def test_the_same_end_told_again_is_heard(left):
    session, hears = left
    turn = session.open_turn()
    done = turn.end_tool("c1", "error", "gone", error="boom", tool="Bash", args={"command": "ls"})
    assert hears.ends == [("c1", "Bash", "ls", "error", "gone")]
    assert done.outcome is not None
    turn.end_tool("c1", "ok", "again", tool="Bash", args={"command": "ls"})
    assert len(hears.ends) == 1, "once it was heard, it is over"
    turn.complete("done")
    assert hears.turns == [[("c1", "error")]], "the turn counts it once"


def test_the_end_of_the_turn_tells_what_was_known(left):
    session, hears = left
    assert session.open_calls() == ["c1"]
    session.open_turn().complete("done")
    assert hears.ends == [("c1", "Bash", "ls", "error", None)]
    assert hears.turns == [[("c1", "error")]]


def test_what_another_process_is_at_is_left_to_it(tmp_path):
    """The hooks of one process have it; a second one neither repeats it nor counts the call as open."""
    script = textwrap.dedent(KILLED).replace(
        "os.kill(os.getpid(), signal.SIGKILL)", "print('at it', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), "begun"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout.readline() == "at it\n"
        hears = Hears()
        session = Engine([hears], state_dir=tmp_path).attach("s")
        turn = session.open_turn()
        assert session.open_calls() == []
        assert session.find_call("Bash", {"command": "ls"}) == ""
        assert turn.end_tool("c1", "unknown").status == "error"
        assert hears.ends == []
        other.stdin.close()
        assert other.wait(60) == 0
    turn.complete("done")
    assert hears.ends == []
    assert hears.turns == [[("c1", "error")]]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_another_process(tmp_path):
    """The child has its parent's memory, but what it was at when it died is told again by the parent."""
    hears = Hears()

    class Dies:
        @hookimpl(tryfirst=True)
        def post_tool_execution(self, event):
            if os.getpid() != parent:
                os._exit(7)

    parent = os.getpid()
    session = Engine([hears, Dies()], state_dir=tmp_path).attach("s")
    session.start()
    turn = session.turn()
    turn.begin()
    turn.begin_tool("c0", "Bash", {"command": "ls"})
    turn.end_tool("c0")
    turn.begin_tool("c1", "Bash", {"command": "ls"})
    child = os.fork()
    if not child:
        turn.end_tool("c1")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    turn.end_tool("c1")
    assert [call for call, *_ in hears.ends] == ["c0", "c1"]
