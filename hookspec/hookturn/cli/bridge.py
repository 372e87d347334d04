"""``hookturn bridge AGENT``: called by an agent as a hook; a payload on standard input, the agent's own answer out.

Some agents take any exit code but 0 for a refusal, others 2: whatever goes wrong here exits 0 with a message on
standard error, unless a hook fails closed, which is then a refusal in the agent's own form. Nothing but the
answer reaches standard output. The command line is read by hand: argparse would cost a tenth of the time, and
an option that this version does not know must not keep the hooks from being asked.
"""

from __future__ import annotations

import os
import sys

from .output import complain, hand_over, hooks_at_work, prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from ..agents.bridge import BridgeAnswer, Place
    from ..engine.engine import Engine

READ_SECONDS = 10.0
"""How long an agent that names no time limit may take to write its payload."""

CLOSE_SECONDS = 0.4
"""How long plugins may take to let go after the answer."""

_WITH_VALUE = ("--timeout", "--event", "--project")


def add_parser(subparsers: Any) -> None:
    """Add the command's parser: for the help, and for words in an unusual order."""
    parser = subparsers.add_parser(
        "bridge",
        help="answer an agent that calls us as its hook",
        description="Read the payload that AGENT gives its hooks on standard input, ask the project's hooks, and "
        "print AGENT's own answer. `hookturn install AGENT` enters this command in the agent's configuration.",
    )
    parser.add_argument("agent", metavar="AGENT", help="the agent that calls, such as claude-code")
    parser.add_argument("--timeout", metavar="SECONDS", help="the agent's time limit for this hook")
    parser.add_argument("--event", metavar="NAME", help="the event, for agents whose payload does not say it")
    parser.set_defaults(func=run)


def run(args: Namespace) -> int:
    """Answer one call."""
    given = {"--timeout": args.timeout, "--event": args.event, "--project": args.project}
    return _answer(args.agent, {key: value for key, value in given.items() if value})


def main(words: list[str]) -> int:
    """Answer one call.

    Parameters:
        words: the command line after ``bridge``.

    Returns:
        the exit code that the agent takes as meant.
    """
    prepare()
    agent, options = "", {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in _WITH_VALUE:
            options[name] = value if equals else next(rest, "")
        elif word == "--json":
            continue  # the answer is the agent's own either way
        elif word.startswith("-") or agent:
            complain(f"bridge: unknown argument {word!r:.60} is ignored")
        else:
            agent = word
    return _answer(agent, options)


def _answer(agent: str, options: dict[str, str]) -> int:
    """Answer the call, and let nothing out but an answer."""
    from ..agents.bridge import AGENTS

    if agent not in AGENTS:
        from ..spec.errors import did_you_mean

        near = did_you_mean(agent, AGENTS) if agent else ""
        complain(f"bridge: {'unknown agent ' + repr(agent) if agent else 'no agent is named'}{near}. "
                 f"One of {', '.join(AGENTS)}.")  # fmt: skip
        return 0
    try:
        with hooks_at_work():
            engines: list[Engine] = []
            answer = _ask(agent, options, engines)
            left = _let_go(engines)
            hand_over(answer.stdout, answer.stderr)
            return _leave(answer.exit_code) if left else answer.exit_code
    except BrokenPipeError:  # the agent does not wait any more
        return _leave(0)
    except Exception as error:  # a refusal by accident is worse than a hook that was not asked
        complain(f"bridge: {type(error).__name__}: {error}")
        return 0


def _ask(agent: str, options: dict[str, str], engines: list[Engine]) -> BridgeAnswer:
    from ..agents.bridge import answer, hooks_of
    from ..paths import state_root
    from ..platform import starter

    timeout = _seconds(options.get("--timeout", ""))
    payload = hooks_of(agent).given(os.environ)
    if payload is None:
        payload = _payload(timeout)

    def engine_for(place: Place) -> Engine:
        from ..project.called import assemble_for

        assembled = assemble_for(place)
        engines.append(assembled.engine)
        if assembled.problems:
            more = f" (and {len(assembled.problems) - 1} more)" if len(assembled.problems) > 1 else ""
            complain(f"{assembled.problems[0]}{more}; see `hookturn check`")
        return assembled.engine

    return answer(
        agent,
        payload,
        environ=dict(os.environ),
        cwd=options.get("--project") or _cwd(),
        engine_for=engine_for,
        event=options.get("--event", ""),
        timeout=timeout,
        memory=state_root() / "bridges",
        caller_pid=starter(),
    )


def _seconds(text: str) -> float | None:
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if 0 < seconds < float("inf"):
        return seconds
    complain(f"bridge: --timeout {text!r:.60} is no number of seconds; the agent's default counts")
    return None


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # the folder was removed meanwhile
        return os.path.expanduser("~")


def _payload(timeout: float | None) -> bytes:
    """Read standard input; what has arrived counts when the agent does not end it in time."""
    from ..agents.bridge import MARGIN, MAX_BYTES
    from ..engine.engine import run_on_thread

    parts: list[bytes] = []

    def read() -> None:
        size = 0
        while size <= MAX_BYTES:
            try:
                part = os.read(0, 1 << 20)
            except OSError:  # closed, or a folder
                return
            if not part:
                return
            parts.append(part)
            size += len(part)

    limit = max(timeout - MARGIN, timeout / 2) if timeout else READ_SECONDS
    try:
        run_on_thread(read, limit)
    except TimeoutError:
        complain("bridge: the payload did not end")
    return b"".join(parts)


def _let_go(engines: list[Engine]) -> bool:
    """Dispose of the plugins; tells whether something is left that may hold the process up."""
    import threading

    from ..engine.engine import run_on_thread

    for engine in engines:
        try:
            run_on_thread(engine.close, CLOSE_SECONDS)
        except TimeoutError:
            return True
    return any(thread.name.startswith("hookturn") for thread in threading.enumerate())


def _leave(code: int) -> int:
    """Leave without waiting for threads that hooks hold up."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(code)
