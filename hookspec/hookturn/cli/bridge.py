"""``hookturn bridge AGENT``: called by an agent as a hook; a payload on standard input, the agent's own answer out.

Some agents take any exit code but 0 for a refusal, others 2: whatever goes wrong here exits 0 with a message on
standard error, unless a hook fails closed, which is then a refusal in the agent's own form. Nothing but the
answer reaches standard output. The command line is read by hand: argparse would cost a tenth of the time, and
an option that this version does not know must not keep the hooks from being asked.
"""

from __future__ import annotations

import gc
import os
import sys

from .keeping import end_process, kept_alive, own_stderr
from .output import complain, diagnose, hand_over, hooks_at_work, prepare

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

END_SECONDS = 1.0
"""How long after the answer the process may take to end: an agent waits for that, too."""

LOOK_SECONDS = 0.2
"""How long standard input is silent before a payload that is whole counts as ended."""

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
    # What is built at the start is kept to the end: looking for garbage in it takes a twentieth of the start.
    gc.disable()
    try:
        return _answer_now(agent, options)
    finally:
        gc.enable()


def _answer_now(agent: str, options: dict[str, str]) -> int:
    from ..agents.bridge import AGENTS

    if agent not in AGENTS:
        from ..spec.errors import did_you_mean

        near = did_you_mean(agent, AGENTS) if agent else ""
        complain(f"bridge: {'unknown agent ' + repr(agent) if agent else 'no agent is named'}{near}. "
                 f"One of {', '.join(AGENTS)}.")  # fmt: skip
        return 0
    code = 0
    _open_streams()
    put_back = own_stderr()
    try:
        with hooks_at_work(), kept_alive():
            engines: list[Engine] = []
            answer = _ask(agent, options, engines)
            code = answer.exit_code
            try:
                hand_over(answer.stdout)  # before all that may fail or hang
            except BrokenPipeError:
                raise
            except OSError as error:  # a hook closed it
                code = _by_exit_code(agent, options, f"a hook closed the standard output ({error})")
            _end_soon(code)
            diagnose(answer.stderr)
            left = _let_go(engines)
    except BrokenPipeError:  # the agent does not wait any more
        return _leave(code)
    except Exception as error:  # a refusal by accident is worse than a hook that was not asked
        complain(f"bridge: {type(error).__name__}: {error}")
        put_back()
        return _leave(code)
    put_back()
    return _leave(code) if left or not _flushed() else code


def _by_exit_code(agent: str, options: dict[str, str], cause: str) -> int:
    """Return the exit code of an answer that cannot be handed over: 2, a refusal, where something fails closed."""
    from ..agents.bridge import hooks_of, late

    event = options.get("--event", "")
    cwd = options.get("--project") or _cwd()
    policy = late(agent, b"", environ=os.environ, cwd=cwd, event=event, memory=_memory(), cause=cause)
    complain(f"bridge: {cause}")
    return 2 if policy.exit_code or policy.stdout != hooks_of(agent).NOTHING else 0


def _open_streams() -> None:
    """Open the standard streams that are closed: the next file would take their place, and what hooks print."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _ask(agent: str, options: dict[str, str], engines: list[Engine]) -> BridgeAnswer:
    from time import monotonic

    from ..agents.bridge import answer, hooks_of, late

    begun = monotonic()
    timeout = _seconds(options.get("--timeout", ""))
    event = options.get("--event", "")
    environ = dict(os.environ)
    payload = hooks_of(agent).given(environ)
    cwd = options.get("--project") or _cwd()
    memory = _memory()
    try:
        if payload is None:
            payload = _payload(timeout)
        from ..platform import starter

        return answer(
            agent,
            payload,
            environ=environ,
            cwd=cwd,
            engine_for=lambda place: _engine_for(place, engines),
            event=event,
            timeout=timeout,
            spent=monotonic() - begun,
            memory=memory,
            caller_pid=starter(),
        )
    except (Exception, KeyboardInterrupt) as error:
        cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return late(agent, payload or b"", environ=environ, cwd=cwd, event=event, memory=memory, cause=cause)


def _engine_for(place: Place, engines: list[Engine]) -> Engine:
    from ..project.called import assemble_for

    assembled = assemble_for(place)
    engines.append(assembled.engine)
    gc.freeze()
    gc.enable()  # hooks may run for long
    if assembled.problems:
        more = f" (and {len(assembled.problems) - 1} more)" if len(assembled.problems) > 1 else ""
        complain(f"{assembled.problems[0]}{more} See `hookturn check`.")
    return assembled.engine


def _memory() -> str | None:
    from ..agents.memory import memory_folder

    try:
        return memory_folder()
    except RuntimeError:  # neither the environment nor the system knows a home
        return None


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
    """Read standard input; what has arrived counts when the agent does not end it.

    A payload that is whole ends by itself: some agents keep the pipe open. One that never becomes whole gets half of
    the time, so that the other half is left for an answer.
    """
    from threading import Event, Thread
    from time import monotonic

    from ..agents.bridge import MAX_BYTES

    parts: list[bytes] = []
    ended = Event()

    def read() -> None:
        size = 0
        try:
            while size <= MAX_BYTES:
                part = os.read(0, 1 << 20)
                if not part:
                    break
                parts.append(part)
                size += len(part)
        except OSError:  # closed, or a folder
            pass
        finally:
            ended.set()

    Thread(target=read, daemon=True, name="hookturn-input").start()
    until = monotonic() + (min(timeout / 2, READ_SECONDS) if timeout else READ_SECONDS)
    seen = 0
    while not ended.wait(min(LOOK_SECONDS, max(until - monotonic(), 0))):
        count = len(parts)
        if monotonic() >= until:
            complain("bridge: the payload did not end")
            break
        if count == seen and _whole(parts):
            break
        seen = count
    return b"".join(parts)


def _whole(parts: list[bytes]) -> bool:
    """Whether a payload is a whole JSON object already."""
    if not parts or not parts[-1].rstrip().endswith(b"}"):
        return False
    import json

    try:
        json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        return False
    return True


def _let_go(engines: list[Engine]) -> bool:
    """Dispose of the plugins; tells whether something is left that may hold the process up."""
    import threading

    from ..engine.waiting import run_on_thread

    for engine in engines:
        try:
            run_on_thread(engine.close, CLOSE_SECONDS)
        except TimeoutError:
            return True
        except BaseException as error:  # the answer is out: whatever a plugin does while it goes
            complain(f"bridge: {type(error).__name__}: {error}")
    return any(thread.name.startswith("hookturn") for thread in threading.enumerate())


def _end_soon(code: int) -> None:
    """End this process in a while, whatever holds it up: threads, exit handlers, standard error that nobody reads."""
    from threading import Thread
    from time import sleep

    def end() -> None:
        sleep(END_SECONDS)
        end_process(code)

    Thread(target=end, daemon=True, name="end").start()


def _flushed() -> bool:
    """Whether the standard streams are as the interpreter expects them at its end; else its exit code would be 120."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True


def _leave(code: int) -> int:
    """Leave without waiting for threads that hooks hold up."""
    _flushed()
    end_process(code)
