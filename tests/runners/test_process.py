"""The process runner with real programs: whatever one does, it ends in time, leaves nothing and is told exactly."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

from hookturn.runners import process
from hookturn.runners.process import run_process

PYTHON = [sys.executable, "-I", "-S"]
SLACK = 0.1  # the promise; other work on this machine may add
BUSY = 3.0

needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds strays by /proc")


def python(code, **options):
    return run_process([*PYTHON, "-c", textwrap.dedent(code)], **options)


def shell(line, **options):
    return run_process(line, **options)


@pytest.fixture
def stray():
    """A word for the environment of a program; afterwards no process that has it may be left."""
    word = f"HOOKTURN_TEST_{uuid4().hex}"
    yield {**os.environ, word: "1"}
    assert survivors(word) == []


def survivors(word):
    if not os.path.isdir("/proc"):
        return []
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "environ").read_bytes():
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX":
                    found.append((entry / "cmdline").read_bytes())
        except OSError:
            continue
    return found


def in_time(result, timeout, grace):
    assert result.timed_out
    assert timeout <= result.elapsed < timeout + grace + SLACK + BUSY


# -- how it ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 2, 3, 100, 255])
def test_exit_code(code):
    result = shell(f"echo out; echo err >&2; exit {code}")
    assert (result.exit_code, result.signal, result.failed_to_start) == (code, None, "")
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert not (result.timed_out or result.cancelled or result.truncated or result.held)
    assert result.ended == f"ended with exit code {code}"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGUSR1, 40])
def test_end_by_signal(number):
    result = python(
        f"import os, resource; resource.setrlimit(4, (0, 0)); os.kill(os.getpid(), {int(number)})"
    )
    assert (result.exit_code, result.signal) == (None, number)
    assert f"was ended by signal {int(number)}" in result.ended


def test_argv_is_no_shell_line():
    result = run_process(["/bin/echo", "$(touch pwned)", "; touch pwned", "*"], cwd="/")
    assert result.stdout == b"$(touch pwned) ; touch pwned *\n"


def test_cwd_env_and_session(tmp_path):
    result = python(
        "import os; print(os.getcwd(), os.environ['WORD'], os.getsid(0) == os.getpid())",
        cwd=str(tmp_path), env={"WORD": "x"},
    )  # fmt: skip
    assert result.stdout.decode().split() == [os.path.realpath(tmp_path), "x", "True"]


# -- time -------------------------------------------------------------------------------------------


def test_hangs(stray):
    result = shell("echo begun; sleep 300", timeout=0.3, env=stray)
    in_time(result, 0.3, process.GRACE)
    assert (result.signal, result.stdout) == (signal.SIGTERM, b"begun\n")
    assert "time limit" in result.ended


def test_spins(stray):
    result = python("while True: pass", timeout=0.3, env=stray)
    in_time(result, 0.3, process.GRACE)
    assert result.signal == signal.SIGTERM


def test_ignores_term(stray):
    result = shell("trap '' TERM; echo begun; while :; do sleep 1; done", timeout=0.8, grace=0.2, env=stray)
    in_time(result, 0.8, 0.2)
    assert result.signal == signal.SIGKILL


def test_may_clean_up_in_its_grace(stray):
    # Begun before the trap: a child that is not the program yet would carry it out, too.
    result = shell("sleep 300 & trap 'echo bye; exit 7' TERM; wait", timeout=1, grace=3, env=stray)
    assert (result.timed_out, result.exit_code, result.stdout) == (True, 7, b"bye\n")
    assert result.elapsed < 4 + BUSY


def test_stops_itself(stray):
    result = shell("kill -STOP $$", timeout=0.3, env=stray)
    in_time(result, 0.3, process.GRACE)
    assert result.signal == signal.SIGTERM


def test_a_grandchild_that_ignores_term_and_holds_the_pipes(stray):
    result = shell('trap "" TERM; (trap "" TERM; sleep 300) & wait', timeout=0.3, grace=0.2, env=stray)
    in_time(result, 0.3, 0.2)


def test_closes_its_outputs_and_goes_on(stray):
    result = shell("exec >&- 2>&-; sleep 300", timeout=0.3, env=stray)
    in_time(result, 0.3, process.GRACE)


# -- children ---------------------------------------------------------------------------------------


def test_a_background_child_on_stdout_is_not_waited_for(stray):
    result = shell("sleep 300 & echo '{}'", timeout=60, env=stray)
    assert (result.exit_code, result.stdout, result.held) == (0, b"{}\n", True)
    assert result.elapsed < 1 + BUSY


def test_a_background_child_without_our_pipes_may_go_on(tmp_path):
    done = tmp_path / "done"
    result = shell(f"(sleep 0.6; echo late > {done}) >/dev/null 2>&1 & echo '{{}}'", timeout=60)
    assert (result.exit_code, result.held, done.exists()) == (0, False, False)
    end = time.monotonic() + 20
    while not (done.exists() and done.read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    assert done.read_text() == "late\n"


@needs_proc
def test_a_child_of_its_own_session(stray):
    result = shell("setsid sleep 300 & sleep 300", timeout=0.5, env=stray)
    in_time(result, 0.5, process.GRACE)


@needs_proc
def test_a_child_of_its_own_session_that_holds_an_output(stray):
    result = shell("setsid sleep 300 & echo '{}'", timeout=60, env=stray)
    assert (result.exit_code, result.stdout, result.held) == (0, b"{}\n", True)


DAEMON = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        time.sleep(300)
    os._exit(0)
os.wait()
"""


@needs_proc
def test_double_fork(stray):
    result = python(DAEMON + "print('up', flush=True); time.sleep(300)", timeout=2.0, grace=0.2, env=stray)
    in_time(result, 2.0, 0.2)
    assert result.stdout == b"up\n"


@needs_proc
@pytest.mark.parametrize("stubborn", ["", 'trap "" TERM; '])
def test_a_child_that_clears_its_environment_is_found_by_its_parent(tmp_path, stubborn):
    pid = tmp_path / "pid"
    result = shell(f"env -i setsid sh -c '{stubborn}echo $$ > {pid}; sleep 300' & wait", timeout=1.5)
    in_time(result, 1.5, process.GRACE)
    try:
        state = Path(f"/proc/{pid.read_text().strip()}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return
    assert state == "Z"


def test_200_children(stray):
    line = 'i=0; while [ $i -lt 200 ]; do (trap "" TERM; sleep 300) & i=$((i+1)); done; echo up; wait'
    result = shell(line, timeout=5, grace=0.2, env=stray)
    in_time(result, 5, 0.2)
    assert result.stdout == b"up\n"


# -- data -------------------------------------------------------------------------------------------


def test_1_gb_on_stdout():
    """In a process of its own, whose greatest size is not that of some other test."""
    tests = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent.parent)!r})\n"
    code = """
        from measure import peak
        from hookturn.runners.process import run_process
        flood = "import os\\nb = b'x' * 1000000\\nfor _ in range({}):\\n    n = 0\\n    while n < len(b): n += os.write(1, b[n:])"
        def run(count):
            return run_process([sys.executable, "-I", "-S", "-c", flood.format(count)], timeout=120, output_cap=4_000_000)
        run_process(["/bin/true"])
        before = peak()
        result = run(1000)
        grown = (peak() - before) * 1024
        print(result.exit_code, len(result.stdout), result.truncated, grown <= 2 * 4_000_000, grown)
    """
    ran = subprocess.run(
        [sys.executable, "-c", tests + textwrap.dedent(code)], capture_output=True, text=True, timeout=200
    )
    assert ran.stdout.startswith("0 4000000 True True "), ran


def test_both_outputs_have_their_own_cap():
    result = python("import os; os.write(2, b'e' * 5000); os.write(1, b'o' * 100)", output_cap=1000)
    assert (result.stdout, result.stderr, result.truncated) == (b"o" * 100, b"e" * 1000, False)


def test_10_mb_of_stdin_that_nobody_reads():
    result = shell("exit 0", stdin=b"x" * 10_000_000)
    assert (result.exit_code, result.elapsed < 1 + BUSY) == (0, True)


def test_10_mb_of_stdin_while_it_sleeps(stray):
    result = shell("sleep 300", stdin=b"x" * 10_000_000, timeout=0.3, env=stray)
    in_time(result, 0.3, process.GRACE)


def test_10_mb_in_and_out_at_once():
    data = os.urandom(10_000_000)
    result = shell("cat", stdin=data, timeout=60, output_cap=20_000_000)
    assert result.exit_code == 0
    assert result.stdout == data


def test_writes_much_before_it_reads():
    code = "import os, sys; os.write(1, b'a' * 1); print('b' * 500000, flush=True); print(len(sys.stdin.buffer.read()))"
    result = python(code, stdin=b"x" * 3_000_000, timeout=60)
    assert result.stdout.endswith(b"\n3000000\n")


def test_closes_stdin_at_once():
    result = python("import os; os.close(0); print('fine')", stdin=b"x" * 3_000_000)
    assert (result.exit_code, result.stdout) == (0, b"fine\n")


def test_a_host_that_left_sigpipe_at_its_default_lives_on():
    code = """
        import signal
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        from hookturn.runners.process import run_process
        result = run_process("exec 0<&-; sleep 0.2", b"x" * 3_000_000)
        print(result.exit_code, signal.pthread_sigmask(signal.SIG_BLOCK, []), flush=True)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "0 set()\n")


def test_output_that_is_not_utf_8():
    assert shell(r"printf '\377\376\000x'").stdout == b"\xff\xfe\x00x"


# -- starting ---------------------------------------------------------------------------------------


def write(path, text, mode=0o755):
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_missing(tmp_path):
    result = run_process([str(tmp_path / "nope")])
    assert (result.exit_code, result.signal) == (None, None)
    assert "nope cannot be started: No such file" in result.failed_to_start
    assert result.ended.startswith("failed to start: ")


def test_not_executable(tmp_path):
    assert "Permission denied" in run_process([write(tmp_path / "x", "#!/bin/sh\n", 0o644)]).failed_to_start


def test_a_folder(tmp_path):
    assert run_process([str(tmp_path)]).failed_to_start


def test_wrong_interpreter(tmp_path):
    result = run_process([write(tmp_path / "x", "#!/no/such/python9 -u\n")])
    assert result.failed_to_start.endswith("needs the interpreter /no/such/python9, which is not there")


def test_interpreter_with_crlf(tmp_path):
    result = run_process([write(tmp_path / "x", "#!/bin/sh\r\nexit 0\r\n")])
    assert result.failed_to_start.endswith("/bin/sh, which is not there (its first line ends in CRLF)")


def test_interpreter_by_env(tmp_path):
    result = run_process([write(tmp_path / "x", "#!/usr/bin/env python9nope\n")])
    assert (result.exit_code, "python9nope" in result.failed_to_start) == (127, True)


def test_no_first_line(tmp_path):
    result = run_process([write(tmp_path / "x", "exit 0\n")])
    assert "its first line should begin with '#!'" in result.failed_to_start


def test_no_such_folder(tmp_path):
    result = run_process(["/bin/echo"], cwd=str(tmp_path / "gone"))
    assert result.failed_to_start == f"the folder {tmp_path / 'gone'} does not exist"


def test_nul_in_an_argument():
    assert run_process(["/bin/echo", "a\0b"]).failed_to_start


def test_too_many_open_files():
    code = """
        import os, resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
        import subprocess, select, signal
        from hookturn.runners.process import run_process
        held = []
        try:
            while True: held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError: pass
        for left in range(1, 8):
            os.close(held.pop())
            before = len(os.listdir("/proc/self/fd")) if left > 1 else 0
            result = run_process(["/bin/echo", "x"])
            print(bool(result.failed_to_start) or result.exit_code)
            if left > 1: assert len(os.listdir("/proc/self/fd")) == before
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[0] == "True"
    assert set(ran.stdout.split()) <= {"True", "0"}


@pytest.mark.parametrize(
    "line",
    [
        "python3 /nope.py",
        "dash /nope.sh",
        "bash /nope.sh",
        "perl /nope.pl",
        "nope-nope",
        "/nope/nope",
        "if [[ x ]; then",
        "python3 -Q",
        "bash -c 'if ('",
        "dash -c 'echo ${x:'",
        "dash -c ': ${x//a/b}'",
        "bash -c '[ a b c d ]'",
        "python3 -c 'import argparse; argparse.ArgumentParser().parse_args([\"--x\"])'",
    ],
)
def test_exit_codes_that_mean_it_could_not_start(line):
    result = shell(line, timeout=60)
    if (
        result.exit_code == 127
        and "not found" in result.failed_to_start
        and line.split()[0] in ("perl", "bash")
    ):
        pytest.skip("no such interpreter here")
    assert result.exit_code in (2, 126, 127)
    assert result.failed_to_start


@pytest.mark.parametrize(
    "words",
    [
        "No force pushes.",
        "src/app.py: line 12: TODO is not allowed",
        "src/app.py: 12: no tabs",
        "error: secrets in .env",
        "usage: ask for a review first",
        "cannot open a pull request from here",
        "can't open file handles in tests",
    ],
)
def test_exit_code_2_with_words_is_left_to_the_wire(words):
    result = python(f"import sys; sys.stderr.write({words!r}); sys.exit(2)")
    assert (result.exit_code, result.failed_to_start) == (2, "")
    assert result.stderr.decode() == words


# -- around it --------------------------------------------------------------------------------------


def test_cancelled_by_a_descriptor(stray):
    read, write_end = os.pipe()
    threading.Timer(0.3, os.write, (write_end, b"x")).start()
    try:
        result = shell("sleep 300", timeout=60, cancel=read, env=stray)
    finally:
        os.close(read)
        os.close(write_end)
    assert (result.cancelled, result.timed_out, result.signal) == (True, False, signal.SIGTERM)
    assert result.elapsed < 1 + BUSY


def test_interrupted(stray):
    """Control-C in the host: the exception passes, and nothing is left."""
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        shell("trap '' TERM INT; sleep 300", timeout=60, env=stray)


def test_many_threads_at_once():
    results = [None] * 24

    def work(number):
        results[number] = shell(f"cat; exit {number}", stdin=str(number).encode() * 1000, timeout=60)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.exit_code for result in results] == list(range(24))
    assert all(result.stdout == str(n).encode() * 1000 for n, result in enumerate(results))


async def test_in_a_thread_of_an_asyncio_program():
    results = await asyncio.gather(*(asyncio.to_thread(shell, f"exit {n}") for n in range(5)))
    child = await asyncio.create_subprocess_exec("/bin/sh", "-c", "exit 3")
    assert await child.wait() == 3
    assert [result.exit_code for result in results] == list(range(5))


@pytest.mark.parametrize("watched", [True, False])
def test_a_host_that_ignores_sigchld_hears_that_the_exit_code_is_lost(watched):
    code = f"""
        import os, signal
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if not {watched}: del os.pidfd_open
        from hookturn.runners.process import run_process
        result = run_process("echo x; exit 2")
        print(result.exit_code, result.signal, result.stdout, result.ended)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout.startswith(
        "None None bytearray(b'x\\n') ended, and somebody else took its exit code"
    ), ran


@pytest.mark.parametrize("missing", ["pidfd", "family", "waitid", "all"])
def test_without_what_only_linux_has(monkeypatch, missing):
    for name in ("pidfd", "family"):
        if missing in (name, "all"):
            monkeypatch.setattr(process, name, lambda *args: None)
    if missing in ("waitid", "all"):
        monkeypatch.delattr(os, "waitid")
    assert shell("kill -9 $$").signal == 9
    held = shell("sleep 300 & echo x", timeout=60)
    assert (held.stdout, held.held) == (b"x\n", True)
    assert shell("cat; exit 5", stdin=b"in").exit_code == 5
    result = shell("trap '' TERM; (trap '' TERM; sleep 300) & wait", timeout=0.4, grace=0.2)
    in_time(result, 0.4, 0.2)
    assert result.signal == signal.SIGKILL


def own_children():
    """Return this process's children, those that nobody has waited for included."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(stat.parent.name)
    return found


@needs_proc
def test_no_descriptor_and_no_zombie_is_left():
    before, children = sorted(os.listdir("/proc/self/fd")), own_children()
    for _ in range(5):
        shell("exit 0", stdin=b"x")
        shell("sleep 300 &")
        shell("sleep 300", timeout=0.05, grace=0.1)
        run_process(["/nope"])
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert own_children() <= children, "other tests in this process may have left some"


def test_the_marks_of_nested_runs_add_up():
    result = shell("echo $HOOKTURN_RUNNING", env={"HOOKTURN_RUNNING": "outer.1234"}, label="inner")
    outer, inner = result.stdout.decode().split()
    assert outer == "outer.1234"
    assert inner.startswith("inner.")
    assert process.labels({"HOOKTURN_RUNNING": result.stdout.decode()}) == ["outer", "inner"]


def test_a_line_that_begins_with_a_hyphen_is_no_option():
    assert shell("-nope-").exit_code == 127


def test_results_say_what_they_are():
    assert json.dumps(repr(shell("exit 4"))) == '"<ProcessResult: ended with exit code 4>"'
