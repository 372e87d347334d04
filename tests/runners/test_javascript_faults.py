"""What JavaScript hooks survive: killed, stopped and crashed Node processes, killed parents, forks, many threads."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hookturn.runners.node.module import GRACE
from hookturn.runners.node.resident import Node
from hookturn.runners.wire import NoAnswer

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(shutil.which("node") is None, reason="there is no node in PATH"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc"),
]

HOOK = """
const { execSync } = require('node:child_process');
exports.onEvent = (ctx, { type, properties }) => {
  if (type === 'echo') ctx.inject(String(properties.n));
  if (type === 'wait') return new Promise((yes) => setTimeout(yes, properties.ms));
  if (type === 'block') execSync('sleep 60');
  if (type === 'loop') while (true) {}
  if (type === 'die') process.kill(process.pid, 'SIGKILL');
  if (type === 'crash') { const all = []; while (true) all.push(new Array(1e7).fill(1.5)); }
  if (type === 'pid') ctx.inject(String(process.pid));
};
"""


class Made:
    def __init__(self, folder):
        self.folder = folder
        (folder / "hook.js").write_text(HOOK)
        self.node = Node.for_project(str(folder))

    def module(self):
        return self.node.load(str(self.folder / "hook.js"), hook_name="hook", source="role.yaml:1")


@pytest.fixture
def made(tmp_path):
    made = Made(tmp_path)
    yield made
    made.node.close()
    assert children_of(os.getpid()) == []


def ask(module, type, timeout=10, **properties):
    return module.call("onEvent", {"type": type, "properties": properties}, timeout=timeout)


def pid_of(module):
    return int(ask(module, "pid").effects[0][1])


def children_of(parent):
    """Return the processes (no zombies) whose parent this is."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                words = file.read().rpartition(b")")[2].split()
                if int(words[1]) == parent and words[0] != b"Z":
                    found.append(int(name))
    return found


def gone(pid, seconds=10.0):
    """Wait until a process is gone; a zombie whose threads have ended, too, counts as gone."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                if (
                    file.read().rpartition(b")")[2].split()[0] == b"Z"
                    and len(os.listdir(f"/proc/{pid}/task")) == 1
                ):
                    return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_killed_between_calls(made):
    module = made.module()
    for _ in range(5):
        os.kill(pid := pid_of(module), signal.SIGKILL)
        assert gone(pid)
        assert ask(module, "echo", n=2).effects == (("inject", "2"),), "what had not begun is called again"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("die", "the Node process was ended by signal 9 (SIGKILL)"),
        ("crash", "the Node process was ended by signal 6 (SIGABRT): FATAL ERROR: "),
    ],
)
def test_a_hook_that_takes_node_with_it(made, fault, words):
    bad, good = made.module(), made.module()
    assert ask(good, "echo", n=1).ran
    with pytest.raises(NoAnswer) as error:
        ask(bad, fault, timeout=30)
    assert words in str(error.value)
    assert ask(good, "echo", n=2).effects == (("inject", "2"),)


@pytest.mark.parametrize("fault", ["block", "loop"])
def test_the_time_limit_holds(made, fault):
    module = made.module()
    module.load()
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        ask(module, fault, timeout=0.5)
    assert time.monotonic() - begun < 0.5 + GRACE + 0.5
    assert ask(module, "echo", n=1).ran


def test_a_call_in_flight_hears_why_the_process_was_killed(made):
    bad, good = made.module(), made.module()
    good.load()
    heard = []

    def wait():
        with pytest.raises(NoAnswer) as error:
            ask(good, "wait", ms=5000)
        heard.append(str(error.value))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)
    with pytest.raises(TimeoutError):
        ask(bad, "block", timeout=0.5)
    thread.join()
    assert (
        "the Node process was stopped, since hook (role.yaml:1) could not be stopped in its call of onEvent"
        in heard[0]
    )


def test_a_process_that_is_stopped_by_a_signal(made):
    module = made.module()
    pid = pid_of(module)
    os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        ask(module, "echo", timeout=0.5, n=1)
    assert time.monotonic() - begun < 0.5 + GRACE + 0.5
    assert gone(pid)
    assert ask(module, "echo", n=1).ran


def test_a_process_that_reads_nothing(made):
    module = made.module()
    os.kill(pid_of(module), signal.SIGSTOP)
    with pytest.raises((TimeoutError, NoAnswer)):
        ask(module, "echo", timeout=0.5, n="x" * 5_000_000)
    assert ask(module, "echo", n=1).ran


def test_close_ends_a_process_that_hangs(made):
    module = made.module()
    pid = pid_of(module)
    os.kill(pid, signal.SIGSTOP)
    made.node.close()
    assert gone(pid)


def test_an_interrupt_stops_the_call(made):
    module = made.module()
    pid = pid_of(module)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ask(module, "loop", timeout=30)
    assert pid_of(module) == pid


def test_24_threads_and_a_killer(made):
    modules = [made.module() for _ in range(4)]
    wrong, failed, done = [], [], threading.Event()

    def work(number):
        left, step = 5, 0
        while left:
            step += 1
            text = f"{number}-{step}"
            try:
                result = ask(modules[number % 4], "echo", timeout=60, n=text)
            except NoAnswer as error:
                failed.append(str(error))
            else:
                left -= 1
                if result.effects != (("inject", text),):
                    wrong.append((text, result))

    def kill():
        while not done.wait(random.uniform(0.2, 2)):
            for pid in children_of(os.getpid()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
    killer = threading.Thread(target=kill)
    for thread in [*threads, killer]:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    done.set()
    killer.join()
    assert wrong == []
    assert all("ended by signal 9" in words or "Node is gone" in words for words in failed), failed
    assert ask(modules[0], "echo", n=1).ran


def test_no_descriptors_or_threads_are_left(made):
    module = made.module()
    ask(module, "echo", n=1)
    made.node.close()
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    for number in range(10):
        pid = pid_of(module)
        if number % 2:
            os.kill(pid, signal.SIGKILL)
            assert gone(pid)
            with suppress(NoAnswer):
                ask(module, "echo", n=1)
        made.node.close()
    end = time.monotonic() + 2
    while (len(os.listdir("/proc/self/fd")), threading.active_count()) != before and time.monotonic() < end:
        time.sleep(0.01)
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


PARENT = """
import os, sys, time
from hookturn.runners.node.resident import Node
folder = sys.argv[1]
module = Node.for_project(folder).load(os.path.join(folder, "hook.js"), hook_name="hook")
def pid(module=module):
    return int(module.call("onEvent", {"type": "pid", "properties": {}}).effects[0][1])
print(pid(), flush=True)
"""


def parent(made, text):
    """Start a program that has a Node process; returns it and Node's number."""
    made.folder.joinpath("parent.py").write_text(PARENT + textwrap.dedent(text))
    argv = [sys.executable, "-W", "error", str(made.folder / "parent.py"), str(made.folder)]
    program = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return program, int(program.stdout.readline())


@pytest.mark.parametrize("busy", [False, True])
def test_a_killed_parent_leaves_nothing(made, busy):
    loop = (
        "module.call('onEvent', {'type': 'block', 'properties': {}}, timeout=60)"
        if busy
        else "time.sleep(60)"
    )
    program, pid = parent(made, loop)
    time.sleep(0.3)
    left = [pid, *children_of(pid)]
    assert len(left) == (2 if busy else 1)
    program.kill()
    program.communicate()
    assert all(gone(pid) for pid in left)


@pytest.mark.parametrize("end", ["", "os._exit(0)", "raise SystemExit(0)", "os.kill(os.getpid(), 15)"])
def test_the_end_of_the_interpreter_leaves_nothing(made, end):
    program, pid = parent(made, end)
    _, err = program.communicate(timeout=20)
    assert err == ""
    assert gone(pid)


def test_a_fork_has_a_process_of_its_own(made):
    program, pid = parent(
        made,
        """
        child = os.fork()
        if child == 0:
            print(pid(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(pid(), flush=True)
        """,
    )
    out, err = program.communicate(timeout=30)
    forked, again = (int(word) for word in out.split())
    assert err == ""
    assert again == pid != forked
    assert gone(pid)
    assert gone(forked)


def test_a_fork_does_not_keep_its_parents_process(made):
    program, pid = parent(
        made,
        """
        child = os.fork()
        if child == 0:
            time.sleep(60)
        print(child, flush=True)
        time.sleep(60)
        """,
    )
    child = int(program.stdout.readline())
    program.kill()
    try:
        assert gone(pid)
    finally:
        os.kill(child, signal.SIGKILL)
        program.communicate()


def test_a_child_of_a_hook_does_not_keep_the_line(made):
    path = made.folder / "spawn.js"
    path.write_text(
        "const { spawn } = require('node:child_process'); exports.onEvent = (ctx) => ctx.inject(String(spawn('sleep', ['60'], {detached: true, stdio: 'inherit'}).pid));"
    )
    module = made.node.load(str(path), hook_name="spawn")
    child = int(module.call("onEvent", {"type": "x"}).effects[0][1])
    try:
        node = children_of(os.getpid())[0]
        os.kill(node, signal.SIGKILL)
        assert gone(node)
        begun = time.monotonic()
        with suppress(NoAnswer):
            module.call("onEvent", {"type": "x"}, timeout=10)
        assert time.monotonic() - begun < 5
    finally:
        os.kill(child, signal.SIGKILL)
        made.node.close()


def test_a_child_of_a_hook_never_holds_the_line(made):
    """Node keeps low descriptors from its children only; ours must be one, however many the host has open."""
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(40)]
    try:
        path = made.folder / "spawn.js"
        path.write_text(
            "const { spawn } = require('node:child_process'); exports.onEvent = (ctx) => "
            "ctx.inject(String(spawn('sleep', ['60'], {detached: true, stdio: 'inherit'}).pid));"
        )
        module = made.node.load(str(path), hook_name="spawn")
        child = int(module.call("onEvent", {"type": "x"}).effects[0][1])
        try:
            links = [os.readlink(link) for link in Path(f"/proc/{child}/fd").iterdir()]
            assert not [link for link in links if link.startswith("socket:")]
            os.kill(children_of(os.getpid())[0], signal.SIGKILL)
            begun = time.monotonic()
            with suppress(NoAnswer):
                module.call("onEvent", {"type": "x"}, timeout=10)
            assert time.monotonic() - begun < 5
        finally:
            os.kill(child, signal.SIGKILL)
            made.node.close()
    finally:
        for fd in held:
            os.close(fd)
