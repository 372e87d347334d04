"""Hook modules in a project's Node process: the interface that dialects use, and rolebox's contract."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import textwrap
import time
from contextlib import suppress

import pytest

from hookturn.runners.node.module import Loaded, Stop
from hookturn.runners.node.resident import Node
from hookturn.runners.wire import FailedToStart, NoAnswer

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node in PATH")

NODE22 = os.environ.get("HOOKTURN_TEST_NODE22", "")  # read here: tests run without our variables

FLAGSHIP = """
// hooks/no-console-log.js
export default {
  onToolAfter: (ctx, { tool, args, output }) => {
    const content = typeof args?.content === "string" ? args.content : "";
    if (content.includes("console.log(")) {
      ctx.inject(`警告：${tool} 输出中发现 console.log()。`);
    }
  },
};
"""


class Made:
    """Modules in one project."""

    def __init__(self, folder):
        self.folder = folder
        self.node = Node.for_project(str(folder))
        self.told = []

    def module(self, text, name="hooks/x.js", **about):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        if text is not None:
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        about = {"hook_name": "my-hook", "source": "role.yaml:4", **about}
        return self.node.load(str(path), log=lambda level, text: self.told.append((level, text)), **about)


@pytest.fixture
def made(tmp_path):
    made = Made(tmp_path)
    yield made
    made.node.close()


def test_the_first_documents_example(made):
    module = made.module(FLAGSHIP)
    written = {"tool": "write", "args": {"content": "console.log(1)"}, "output": "ok"}
    result = module.call("onToolAfter", written, {"sessionID": "s", "agent": "coder"})
    assert result.ran
    assert result.effects == (("inject", "警告：write 输出中发现 console.log()。"),)
    assert (result.payload, result.value) == ({}, None)
    assert module.call("onToolAfter", {**written, "args": {"content": "x"}}).effects == ()


def test_load_says_what_a_module_has_and_runs_onload_once(made):
    module = made.module(
        """
        export default {
          onLoad: (ctx) => { ctx.log.info(`Hook ${ctx.hookName} loaded`); ctx.inject('nothing'); },
          onDispose: (ctx) => { ctx.log.info(`Hook ${ctx.hookName} disposed`); },
          onEvent() {},
        };
        export function helper() {}
        """
    )
    loaded = Loaded(handlers=("helper", "onLoad", "onDispose", "onEvent"), general=False, on_load_error="")
    assert (module.load(), module.load()) == (loaded, loaded)
    assert module.call("onEvent", {"type": "session.idle", "properties": {}}).effects == ()
    module.dispose()
    assert made.told == [("info", "Hook my-hook loaded"), ("info", "Hook my-hook disposed")]


def test_an_onload_that_throws_is_a_warning(made):
    module = made.module(
        "export const onLoad = () => { throw new Error('no'); }; export const onEvent = (ctx) => ctx.skip();"
    )
    assert module.call("onEvent", {"type": "x"}).effects == (("skip", ""),)
    assert made.told == [("warning", "onLoad threw: Error: no")]
    assert module.load().on_load_error == "Error: no"


def test_a_missing_handler_is_no_error(made):
    module = made.module("export const onEvent = () => {};")
    assert module.call("onToolBefore", {"tool": "x", "args": {}}).ran is False


def test_the_context(made):
    module = made.module(
        """
        export function onToolBefore(ctx, payload) {
          const {hookName, config, sessionID, agent} = ctx;
          ctx.inject(JSON.stringify([hookName, config, sessionID, agent, ctx.getFunctionState('f'), ctx.getFunctionState('g'),
                                     ctx.getDispatchState(), ctx.getGraphState(), ctx.getBlocks(), arguments.length]));
          ctx.skip('because'); ctx.retry(); ctx.retry('again');
          return () => 'what it returns does not count';
        }
        """,
        config={"severity": "warn"},
    )
    context = {"sessionID": "s", "agent": "a", "functions": {"f": {"active": True}}, "graph": {"n": 1}}
    said, *others = module.call("onToolBefore", {"tool": "bash", "args": {}}, context).effects
    assert said[1] == (
        '["my-hook",{"severity":"warn"},"s","a",{"active":true},null,{"activeTaskCount":0,"tasks":[]},{"n":1},[],2]'
    )
    assert others == [("skip", "because"), ("retry", ""), ("retry", "again")]


def test_no_config_is_undefined(made):
    module = made.module(
        "export const onEvent = (ctx) => ctx.inject([ctx.config, ctx.sessionID, ctx.agent].map(String).join());"
    )
    assert module.call("onEvent", {"type": "x"}).effects == (("inject", "undefined,undefined,undefined"),)


def test_edits_in_place_come_back(made):
    module = made.module(
        """
        export function onSystemTransform(ctx, { system }) { system.push('last'); system[0] = system[0].toUpperCase(); }
        export function onToolBefore(ctx, { tool, args }) { args.deep.list.push(1); delete args.gone; tool = 'other'; }
        export function onChatMessage(ctx, payload) { payload.text = 'other'; }
        export function onEvent(ctx, payload) { payload.properties = {...payload.properties}; }
        """
    )
    assert module.call("onSystemTransform", {"system": ["a", "b"]}).payload == {"system": ["A", "b", "last"]}
    edited = module.call(
        "onToolBefore", {"tool": "x", "args": {"deep": {"list": []}, "gone": 1, "kept": "☃"}}
    )
    assert edited.payload == {"args": {"deep": {"list": [1]}, "kept": "☃"}}
    assert module.call("onChatMessage", {"text": "hi"}).payload == {"text": "other"}
    assert module.call("onEvent", {"type": "x", "properties": {"a": 1}}).payload == {}


def test_blocks(made):
    module = made.module(
        """
        export function onSystemTransform(ctx, { system }) {
          ctx.inject(JSON.stringify(ctx.getBlocks().map((block) => block.tag)));
          ctx.replaceBlock('my-rules', '<my-rules>new</my-rules>');
          ctx.removeBlock('gone');
          ctx.replaceBlock('inner', 'by its tag inside');
          ctx.replaceBlock('nowhere', 'x');
          ctx.removeBlock('nowhere');
        }
        """
    )
    system = [
        "plain <my-rules> in text",
        "<my-rules>old</my-rules>",
        '<gone now="1">',
        "text <inner>x</inner>",
    ]
    result = module.call("onSystemTransform", {"system": system})
    assert result.effects == (("inject", '["text","my-rules","gone","text"]'),)
    assert result.payload == {
        "system": ["plain <my-rules> in text", "<my-rules>new</my-rules>", "text by its tag inside"]
    }


def test_what_it_does_after_its_end_has_no_effect(made):
    module = made.module(
        "export const onEvent = (ctx, { type }) => { if (type === 'late') setTimeout(() => ctx.inject('x'), 20); else return new Promise((yes) => setTimeout(yes, 100)); };"
    )
    assert module.call("onEvent", {"type": "late"}).effects == ()
    assert module.call("onEvent", {"type": "wait"}).effects == ()
    assert made.told == [("warning", "inject() after the handler had ended has no effect")]


def test_errors_that_nobody_catches_cost_nothing(made):
    module = made.module(
        "export const onEvent = () => { Promise.reject(new Error('lost')); setTimeout(() => { throw 'timer'; }); return new Promise((yes) => setTimeout(yes, 50)); };"
    )
    assert module.call("onEvent", {"type": "x"}).ran
    assert made.told == [("error", "nobody caught Error: lost"), ("error", "nobody caught it threw timer")]


# -- loading ----------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_loaded_is_not_tried_again_until_it_changes(made):
    module = made.module(
        "import { appendFileSync } from 'node:fs'; appendFileSync('tries', 'x'); throw new Error('broken');"
    )
    for _ in range(3):
        with pytest.raises(FailedToStart, match=r"role.yaml:4: .*x.js:1:\d+ cannot be loaded: Error: broken"):
            module.call("onEvent", {"type": "x"})
    assert (made.folder / "tries").read_text() == "x"
    module.reload()
    with pytest.raises(FailedToStart):
        module.load()
    assert (made.folder / "tries").read_text() == "xx"
    (made.folder / "hooks/x.js").write_text("export const onEvent = (ctx) => ctx.inject('mended');")
    assert module.call("onEvent", {"type": "x"}).effects == (("inject", "mended"),)


def test_a_missing_file(made):
    with pytest.raises(FailedToStart, match=r"gone.js cannot be loaded: .*Cannot find module"):
        made.module(None, name="gone.js").load()


def test_reload_imports_the_file_as_it_is(made):
    module = made.module("export const onEvent = (ctx) => ctx.inject('one');")
    assert module.call("onEvent", {"type": "x"}).effects == (("inject", "one"),)
    made.module("export const onEvent = (ctx) => ctx.inject('two');")
    assert module.call("onEvent", {"type": "x"}).effects == (("inject", "one"),)
    module.reload()
    assert module.call("onEvent", {"type": "x"}).effects == (("inject", "two"),)


def test_a_file_that_is_not_what_was_trusted(made):
    with pytest.raises(FailedToStart, match="it is not what was trusted"):
        made.module("export const onEvent = () => {};", digest="0" * 64).load()


@pytest.mark.parametrize(("name", "text"), [("x.txt", "hi"), ("x.json", "{}"), ("x.wasm", ""), ("x", "")])
def test_modules_that_are_not_javascript(made, name, text):
    with suppress(FailedToStart):
        assert made.module(text, name=name).load().handlers == ()


def test_typescript_needs_a_newer_node(made):
    module = made.module("export const onEvent = (ctx: any): void => ctx.inject('typed');", name="x.ts")
    major, minor = (int(part) for part in _version("node").split(".")[:2])
    if (major, minor) >= (22, 6):
        assert module.call("onEvent", {"type": "x"}).effects == (("inject", "typed"),)
        return
    with pytest.raises(
        FailedToStart, match=r"TypeScript needs Node 22.6 or newer, and this is .* Set HOOKTURN_NODE"
    ):
        module.load()


@pytest.mark.agents
@pytest.mark.parametrize("name", ["x.ts", "x.mts", "x.cts"])
def test_typescript(made, name):
    node = NODE22 or pytest.skip("HOOKTURN_TEST_NODE22 names no Node 22.6 or newer")
    export = "export =" if name == "x.cts" else "export default"
    text = "interface Ctx { inject(text: string): void }\nconst hooks = { onEvent(ctx: Ctx): void { ctx.inject('typed' as string); } };\n"
    text += "module.exports = hooks;" if name == "x.cts" else f"{export} hooks;"
    module = made.module(text, name=name)
    assert module.call("onEvent", {"type": "x"}, env={**os.environ, "HOOKTURN_NODE": node}).effects == (
        ("inject", "typed"),
    )
    assert made.told == []


def _version(node):
    return (
        subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
        .stdout.strip()
        .lstrip("v")
    )


# -- what a module cannot do to others --------------------------------------------------------------

CULPRITS = {
    "loops": "while (true) {}",
    "hangs": "return new Promise(() => {})",
    "exits": "process.exit(1)",
    "leaks": "const a = []; while (true) a.push({a: new Array(100).fill('x')})",
    "buffers": "const a = []; while (true) a.push(Buffer.alloc(5e7, 1))",
    "pollutes": "Object.prototype.toJSON = () => 'mine'; Array.prototype.push = null; JSON.stringify = null; Promise.prototype.then = null;",
    "timers": "setInterval(() => {}, 1); require('node:net').createServer().listen(0)",
    "closes": "process.stdout.end(); process.stdin.destroy(); globalThis.console = null",
}  # fmt: skip


@pytest.mark.parametrize("fault", CULPRITS)
def test_a_culprit_costs_only_its_own_call(made, fault):
    good = made.module("let n = 0; exports.onEvent = (ctx) => ctx.inject(String(++n));", name="good.js")
    bad = made.module(
        f"exports.onEvent = (ctx, {{ type }}) => {{ if (type === 'bad') {{ {CULPRITS[fault]} }} else ctx.inject('fine'); }};"
    )
    assert good.call("onEvent", {"type": "x"}).effects == (("inject", "1"),)
    pid = _pid(good)
    if fault in ("pollutes", "timers", "closes"):
        with suppress(NoAnswer, TimeoutError):
            bad.call("onEvent", {"type": "bad"}, timeout=2)
        bad.reload()
    else:
        with pytest.raises((NoAnswer, TimeoutError)):
            bad.call("onEvent", {"type": "bad"}, timeout=0.5 if fault in ("loops", "hangs") else 20)
    assert good.call("onEvent", {"type": "x"}).effects == (("inject", "2"),), (
        "the module next to it lost its state"
    )
    assert _pid(good) == pid
    assert bad.call("onEvent", {"type": "good"}).effects == (("inject", "fine"),)


def _pid(module):
    return module._loaded_in.pid


def test_a_flood_of_words_is_cut(made):
    module = made.module(
        "export const onEvent = (ctx) => { for (let i = 0; i < 1e5; i++) console.log('x'.repeat(1000)); ctx.log.info('last'); };"
    )
    assert module.call("onEvent", {"type": "x"}, timeout=20).ran
    assert sum(len(text) for _, text in made.told) < 70_000
    assert made.told[-1] == ("warning", "it printed more than a call may; the rest is dropped")
    made.told.clear()
    assert module.call("onEvent", {"type": "x"}, timeout=20).ran
    assert made.told, "the next call has room of its own"


def test_others_that_a_stopped_module_was_working_on_hear_of_it(made):
    module = made.module(
        "exports.onEvent = (ctx, { type }) => type === 'loop' ? new Promise((yes) => setTimeout(() => { while (true) {} }, 50)) : new Promise((yes) => setTimeout(yes, 2000));"
    )
    module.load()

    async def go():
        begun = asyncio.ensure_future(module.acall("onEvent", {"type": "wait"}))
        await asyncio.sleep(0.1)
        loop = asyncio.ensure_future(module.acall("onEvent", {"type": "loop"}, timeout=0.5))
        await asyncio.sleep(0.2)
        waiting = asyncio.ensure_future(module.acall("onEvent", {"type": "wait"}, timeout=5))
        return await asyncio.gather(begun, loop, waiting, return_exceptions=True)

    begun, loop, waiting = asyncio.run(go())
    assert isinstance(begun, NoAnswer)
    assert "the module was stopped, since its call of onEvent ran over its time limit" in str(begun)
    assert isinstance(loop, TimeoutError)
    assert getattr(waiting, "ran", waiting) is True, "what had not begun goes to a fresh module"


def test_a_timer_that_never_ends_is_stopped_by_the_next_call(made):
    module = made.module(
        "exports.onEvent = (ctx, { type }) => { if (type === 'set') setTimeout(() => { while (true) {} }, 1); };"
    )
    assert module.call("onEvent", {"type": "set"}).ran
    time.sleep(0.1)
    with pytest.raises(TimeoutError):
        module.call("onEvent", {"type": "x"}, timeout=0.3)
    assert module.call("onEvent", {"type": "x"}).ran


def test_stop_from_another_thread(made):
    from threading import Timer

    module = made.module("exports.onEvent = () => new Promise(() => {});")
    module.load()
    stop = Stop()
    Timer(0.1, stop.set).start()
    with pytest.raises(NoAnswer, match="it was stopped"):
        module.call("onEvent", {"type": "x"}, timeout=30, stop=stop)
    with pytest.raises(NoAnswer, match="it was stopped"):
        module.call("onEvent", {"type": "x"}, timeout=30, stop=stop)


def test_a_time_limit_takes_the_children_too(made):
    module = made.module(
        """
        const { spawn } = require('node:child_process');
        exports.onEvent = (ctx) => {
          spawn('sleep', ['98.7654'], { detached: true, stdio: 'ignore' });
          spawn('sh', ['-c', 'sleep 98.7654 & sleep 98.7654'], { stdio: 'inherit' });
          return new Promise(() => {});
        };
        """
    )
    with pytest.raises(TimeoutError):
        module.call("onEvent", {"type": "x"}, timeout=1)
    assert _sleepers("98.7654") == []


def _sleepers(seconds):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if seconds.encode() in words[1:] or f"sleep {seconds}".encode() in b" ".join(words):
                found.append(words)
    return found


def test_the_last_module_ends_the_process(made):
    first, second = (
        made.module("exports.onEvent = () => {};", name="a.js"),
        made.module("exports.onEvent = () => {};", name="b.js"),
    )
    first.load(), second.load()
    pid = _pid(first)
    assert _pid(second) == pid
    first.close()
    assert _alive(pid)
    second.close()
    assert not _alive(pid)
    assert second.call("onEvent", {"type": "x"}).ran, "a call after that starts another"
    second.close()


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
