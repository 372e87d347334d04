"""JavaScript files as hooks of an engine: what they get, what they may return, and what their faults cost."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading

import pytest

from hookturn import Engine, events
from hookturn.redact import Secret
from hookturn.runners import javascript
from hookturn.runners.entry import HookEntry
from hookturn.spec.errors import RegistrationError

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node in PATH")

PRE = ["pre_tool_execution"]
CALL = events.PreToolExecution(tool="bash", args={"command": "rm x"}, session_id="s1")


class Made:
    """Engines whose hooks are JavaScript files in one folder."""

    def __init__(self, folder):
        self.folder = folder
        self.engines = []

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def add(
        self,
        engine,
        text,
        *,
        path="hook.mjs",
        timings=PRE,
        name="hook",
        files=None,
        config=None,
        live=False,
        **options,
    ):
        if text is not None:
            self.write(path, text)
        entry = HookEntry(
            name=name, kind="javascript", run=path, timings=list(timings), options=options, file="hookturn.yaml", line=3,
            layer="user", base_dir=str(self.folder), files=files or {},
        )  # fmt: skip
        plugin = javascript.make(entry, config, engine.registry.timings, live=live)
        engine.register(plugin, name, source=entry.source, layer="user", config=config, options=options)

    def engine(self, text=None, state_dir=None, **about):
        engine = Engine(project_dir=self.folder, state_dir=state_dir)
        self.engines.append(engine)
        if text is not None:
            self.add(engine, text, **about)
        return engine

    def fire(self, text, event=CALL, **about):
        return self.engine(text, **about).fire(event)


@pytest.fixture
def made(tmp_path):
    made = Made(tmp_path)
    yield made
    for engine in made.engines:
        engine.close()


def failure(out):
    """Return the words of the only failure of an outcome that decided nothing."""
    assert (out.decision, len(out.failures)) == (None, 1), out
    return out.failures[0].message


# -- how a file is read -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.mjs", "export const preToolExecution = () => ({deny: 'no'});"),
        ("a.mjs", "export function pre_tool_execution() { return {deny: 'no'}; }"),
        ("a.mjs", "export default {preToolExecution() { return this.words; }, words: {deny: 'no'}};"),
        ("a.mjs", "class Hooks { pre_tool_execution() { return {deny: this.why}; } why = 'no' }; export default new Hooks();"),
        ("a.mjs", "export default async () => ({deny: 'no'});"),
        ("a.js", "export default {preToolExecution: () => ({deny: 'no'})};"),  # ES module without a package.json
        ("a.js", "module.exports = {preToolExecution: () => ({deny: 'no'})};"),
        ("a.js", "exports.preToolExecution = () => ({deny: 'no'});"),
        ("a.cjs", "const why = require('./why.cjs'); module.exports = () => ({deny: why});"),
        ("a.cjs", "Object.defineProperty(exports, '__esModule', {value: true}); exports.default = {preToolExecution: () => ({deny: 'no'})};"),
        ("a.mjs", "import why from './why.cjs'; export const preToolExecution = () => ({deny: why});"),
        ("a.mjs", "const why = await Promise.resolve('no'); export const preToolExecution = () => ({deny: why});"),
        ("sub folder/ä#?%.mjs", "export const preToolExecution = () => ({deny: 'no'});"),
    ],
)  # fmt: skip
def test_every_form_of_module(made, path, text):
    made.write("why.cjs", "module.exports = 'no';")
    out = made.fire(text, path=path)
    assert (out.decision, out.reason, out.by, out.failures) == ("deny", "no", "hook", ())


def test_a_named_export_goes_before_the_default_one(made):
    out = made.fire(
        "export const preToolExecution = () => ({warn: 'named'}); export default () => ({warn: 'default'});"
    )
    assert out.warnings == ("named",)


def test_a_default_function_serves_every_timing_of_the_entry(made):
    engine = made.engine(
        "export default (event) => ({warn: event.tool ?? event.prompt});",
        timings=[*PRE, "on_user_prompt_submit"],
    )
    assert engine.fire(CALL).warnings == ("bash",)
    assert engine.fire(events.UserPromptSubmit(prompt="hi")).warnings == ("hi",)


def test_a_file_without_the_function_says_what_it_has(made):
    words = failure(made.fire("export function preToolExecutoin() {}; export const x = 1;"))
    assert "hookturn.yaml:3: " in words
    assert "exports no pre_tool_execution" in words
    assert "it exports preToolExecutoin" in words


def test_each_entry_has_a_module_of_its_own(made):
    text = "let n = 0; export const preToolExecution = () => ({warn: `${++n} ${++globalThis.total || (globalThis.total = 1)}`});"
    engine = made.engine()
    made.add(engine, text, name="one")
    made.add(engine, text, name="two")
    engine.fire(CALL)
    assert engine.fire(CALL).warnings == ("2 2", "2 2")


def test_one_process_a_project(made):
    text = "export const preToolExecution = () => ({warn: String(process.pid)});"
    engine = made.engine()
    for number in range(3):
        made.add(engine, text, name=f"hook{number}")
    assert len(set(engine.fire(CALL).warnings)) == 1
    assert made.engine(text).fire(CALL).warnings[0] in engine.fire(CALL).warnings


# -- what it gets -----------------------------------------------------------------------------------


def test_the_event_and_the_ctx(made):
    text = """export function preToolExecution(event, ctx) {
        const {tool, args, command, kind, session_id} = event;
        return {warn: JSON.stringify({tool, args, command, kind, session_id, name: ctx.hookName, config: ctx.config,
                                      dir: ctx.projectDir, cwd: process.cwd(), argv: process.argv.length})};
    }"""
    import json

    data = json.loads(made.fire(text, config={"branch": "main", "n": 1}).warnings[0])
    folder = os.path.realpath(made.folder)
    assert data == {
        "tool": "bash", "args": {"command": "rm x"}, "command": "rm x", "kind": "bash", "session_id": "s1", "name": "hook",
        "config": {"branch": "main", "n": 1}, "dir": folder, "cwd": folder, "argv": data["argv"],
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["\ud800 \0 \u2028 \x1b ☃", "x" * 3_000_000, '"\\\n\r\t'], ids=["odd", "huge", "quotes"]
)
def test_any_text_arrives(made, text):
    code = """import {createHash} from 'node:crypto';
    export const preToolExecution = (event) => ({rewrite: {args: {command: event.args.command.slice(0, 50), n: event.args.command.length}}});"""
    out = made.fire(code, events.PreToolExecution(tool="bash", args={"command": text}))
    assert out.event.args == {"command": text[:50], "n": len(text)}


def test_an_event_is_read_only(made):
    words = failure(made.fire("export const preToolExecution = (event) => { event.args.command = 'ls'; };"))
    assert "hook.mjs:1:" in words
    assert "read only property 'command'" in words


def test_secrets_are_readable_and_hidden_in_what_it_says(made):
    secret = Secret("hunter2-hunter2", "env:TOKEN")
    text = "export function preToolExecution(e, ctx) { if (e.tool === 'x') throw new Error(ctx.config.token); ctx.inject(ctx.config.token); return {deny: `${ctx.config.token.length} ${ctx.config.token}`}; }"
    engine = made.engine(text, config={"token": secret})
    out = engine.fire(CALL)
    assert out.reason.startswith("15 ")
    assert "hunter2" not in out.reason
    assert "hunter2" not in engine.take_injected("s1")
    out = engine.fire(events.PreToolExecution(tool="x", args={}))
    assert "hunter2" not in out.failures[0].message


def test_the_environment_is_the_agents(made, monkeypatch):
    text = "export const preToolExecution = (e, ctx) => ({warn: [ctx.env.WHO, process.env.WHO, ctx.env.GONE].join()});"
    monkeypatch.setenv("GONE", "1")
    engine = made.engine(text)
    assert engine.fire(CALL).warnings == (",,1",)
    for who, gone in (("a", "1"), ("b", None), (None, "2")):
        for name, value in (("WHO", who), ("GONE", gone)):
            monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
        assert engine.fire(CALL).warnings == (f"{who or ''},{who or ''},{gone or ''}",)


def test_state_and_store(made):
    text = """export async function preToolExecution(event, ctx) {
        const n = await ctx.state.get('n', 0) + 1;
        await ctx.state.set('n', n);
        await ctx.store.set('all', await ctx.store.get('all', 0) + 1);
        return {warn: `${n} ${await ctx.store.get('all')} ${await ctx.state.get('none')}`};
    }"""
    engine = made.engine(text)
    other = events.PreToolExecution(tool="bash", args={}, session_id="s2")
    assert [engine.fire(event).warnings[0] for event in (CALL, CALL, other)] == [
        "1 1 null",
        "2 2 null",
        "1 3 null",
    ]


def test_what_cannot_be_stored_rejects(made):
    text = "export const preToolExecution = (e, ctx) => ctx.state.get(1).catch((error) => ({warn: error.message}));"
    assert made.fire(text).warnings == ("TypeError: a key must be a text",)


def test_inject(made):
    engine = made.engine(
        "export const preToolExecution = (e, ctx) => { ctx.inject('one'); ctx.inject('two'); };"
    )
    engine.fire(CALL)
    assert engine.take_injected("s1") == "one\ntwo"


def test_a_hook_that_fails_injects_nothing(made):
    engine = made.engine("export const preToolExecution = (e, ctx) => { ctx.inject('one'); throw 1; };")
    engine.fire(CALL)
    assert engine.take_injected("s1") == ""


def test_what_it_logs_and_prints(made, hook_log):
    made.fire("""import {spawnSync} from 'node:child_process';
    export function preToolExecution(e, ctx) {
        ctx.log.debug('d %d', 1); ctx.log.info({a: 1}); ctx.log.warn('w'); ctx.log.error('e\x1b[2J');
        console.log('printed', [1]); console.error('complained'); process.stdout.write('a\\nb');
        process.stderr.write('c');
        spawnSync('echo', ['not ours'], {stdio: 'inherit'});
    }""")
    told = [
        (record["level"].name, record["message"])
        for record in hook_log
        if record["extra"].get("hook") == "hook:hook"
    ]
    assert told == [
        ("DEBUG", "d 1"), ("INFO", "{ a: 1 }"), ("WARNING", "w"), ("ERROR", "e\\x1b[2J"), ("INFO", "printed [ 1 ]"),
        ("WARNING", "complained"), ("INFO", "a"), ("INFO", "b"), ("WARNING", "c"),
    ]  # fmt: skip


# -- what it returns --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["undefined", "null", "{}", "{deny: undefined}", "[]", "[null]", "Promise.resolve()"]
)
def test_no_opinion(made, value):
    out = made.fire(f"export const preToolExecution = () => ({value});")
    assert (out.decision, out.failures, out.hooks) == (None, (), ())


def test_answers(made):
    out = made.fire(
        "export const preToolExecution = () => [{rewrite: {args: {command: 'ls'}}, warn: 'w'}, {ask: 'sure?'}];"
    )
    assert (out.decision, out.reason, out.warnings, out.event.command) == ("ask", "sure?", ("w",), "ls")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("'no'", "an answer is one JSON object, got a string"),
        ("false", "an answer is one JSON object, got a boolean"),
        ("0", "got a number"),
        ("{denny: 'x'}", "unknown key 'denny' in the answer (did you mean 'deny'?)"),
        ("{deny: ''}", "Deny needs a reason"),
        ("{deny: 1}", "reason must be a string"),
        ("[{deny: 'x'}, 1]", "got a number"),
        ("() => 1", "what it returned cannot be sent: a function is no JSON"),
        ("{rewrite: {args: {n: NaN}}}", "NaN is no JSON"),
        ("{rewrite: {args: new Map()}}", "a Map is no JSON"),
        ("{rewrite: {args: {n: 10n}}}", "what it returned cannot be sent: Do not know how to serialize a BigInt"),
        ("(() => { const a = {}; a.a = a; return a; })()", "what it returned cannot be sent: Converting circular structure"),
        ("{get deny() { throw new Error('getter'); }}", "what it returned cannot be sent: Error: getter"),
        ("{deny: 'x'.repeat(2e6)}", "it has more than 1,000,000 characters"),
        ("{continue: 'go on'}", "Continue"),
        ("Array.from({length: 5000}).reduce((a) => ({a}), {})", "is nested too deep"),
            ("Array.from({length: 300}).reduce((a) => ({a}), {})", "is nested deeper than 200 levels"),
    ],
)  # fmt: skip
def test_a_bad_answer_is_a_failure_of_the_hook(made, value, words):
    assert words in failure(made.fire(f"export const preToolExecution = () => ({value});"))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("throw new TypeError('broken')", "hook.mjs:1:"),
        ("throw new TypeError('broken')", "TypeError: broken"),
        ("throw undefined", "it threw undefined"),
        ("throw null", "it threw null"),
        ("throw 'words'", "it threw words"),
        ("throw Object.create(null)", "it threw [Object: null prototype] {}"),
        ("throw new Proxy({}, {get() { throw 1 }, has() { throw 1 }})", "it threw"),
        ("return Promise.reject(new Error('later'))", "Error: later"),
        ("return new Promise((_, no) => setTimeout(no, 5))", "it threw undefined"),
        ("process.exit(3)", "it called process.exit(3)"),
        ("process.abort()", "process.abort() is not supported in workers"),
        ("null.x", "Cannot read properties of null"),
        ("(function f() { f(); })()", "Maximum call stack size exceeded"),
        ("throw new Error('x'.repeat(1e6))", "Error: xxx"),
    ],
)  # fmt: skip
def test_a_hook_that_throws(made, body, words):
    engine = made.engine(f"export const preToolExecution = () => {{ {body}; }};")
    message = failure(engine.fire(CALL))
    assert words in message
    assert message.startswith("hookturn.yaml:3: ")
    assert len(message) < 3_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("export const = 1;", "SyntaxError"),
        ("throw new Error('at import');", "hook.mjs:1:7 cannot be loaded: Error: at import"),
        ("throw undefined;", "cannot be loaded: it threw undefined"),
        ("import 'not-installed-anywhere';", "Cannot find package 'not-installed-anywhere'"),
        ("process.exit(0);", "it called process.exit(0) while it was imported"),
        ("export const onLoad = () => { throw new Error('no db'); };", "Error: no db"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_loaded(made, text, words):
    engine = made.engine(text)
    assert words in failure(engine.fire(CALL))
    assert words in failure(engine.fire(CALL))


def test_a_failed_guard_denies(made):
    out = made.fire("export const preToolExecution = () => { throw new Error('x'); };", guard=True)
    assert (out.decision, "hook" in out.reason) == ("deny", True)


# -- before it runs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "words"), [("gone.js", "gone.js does not exist"), (".", "is no JavaScript file"), ("x.py", "is no JavaScript file")]
)  # fmt: skip
def test_what_is_certainly_not_there_is_refused(made, path, words):
    made.write("x.py", "")
    with pytest.raises(RegistrationError, match=words):
        made.engine().registry  # noqa: B018
        made.add(made.engine(), None, path=path)


def test_no_node(made, monkeypatch):
    monkeypatch.setenv("PATH", str(made.folder))
    words = failure(made.fire("export default () => ({deny: 'x'});"))
    assert (
        "hooks in JavaScript need Node: there is no program 'node' in PATH. Install Node 20.10 or newer, or name one"
        in words
    )


def test_a_node_by_name(made, monkeypatch):
    node = made.write("my node", f'#!/bin/sh\nMINE=1 exec {shutil.which("node")} "$@"\n')
    monkeypatch.setenv("HOOKTURN_NODE", str(node))
    text = "export const preToolExecution = () => ({warn: process.env.MINE});"
    assert "is not executable" in failure(made.fire(text))
    node.chmod(0o755)
    assert made.fire(text).warnings == ("1",)
    monkeypatch.setenv("HOOKTURN_NODE", "bin/node")
    other = Made(made.folder / "other")
    words = failure(other.fire(text))
    assert "HOOKTURN_NODE must be an absolute path" in words


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'bad option' >&2; exit 9", "could not start: the Node process ended with exit code 9: bad option"),
        ("""printf 'old 0 0 {"node":"12.1.0"}\\n' >&$2; sleep 5""", "is Node 12.1.0, which is too old. Install Node 20.10 or newer"),
        ("kill -9 $$", "was ended by signal 9"),
    ],
)  # fmt: skip
def test_a_node_that_will_not_do(made, monkeypatch, script, words):
    node = made.write("node", f"#!/bin/bash\n{script}\n")
    node.chmod(0o755)
    monkeypatch.setenv("HOOKTURN_NODE", str(node))
    assert words in failure(made.fire("export default () => ({deny: 'x'});"))


def test_a_trusted_file_that_changes_is_not_run(made):
    from hookturn.runners.module import digest_of

    path = made.write("hook.mjs", "export default () => ({warn: 'a'});")
    engine = made.engine()
    made.add(engine, None, files={str(path): digest_of(str(path))})
    assert engine.fire(CALL).warnings == ("a",)
    made.write("hook.mjs", "export default () => ({warn: 'b'});")
    words = failure(engine.fire(CALL))
    assert "is not what was trusted" in words
    path.unlink()
    assert "is not what was trusted" in failure(engine.fire(CALL))


def test_a_dry_event_calls_nothing_unless_live(made):
    dry = events.PreToolExecution(tool="bash", args={}, dry_run=True)
    text = "export default (event) => ({warn: String(event.dry_run)});"
    assert made.fire(text, dry).warnings == ()
    assert made.fire(text, dry, live=True).warnings == ("true",)


# -- engines, threads and loops ---------------------------------------------------------------------


def test_on_dispose_is_called_when_the_engine_closes(made):
    text = "import {appendFileSync} from 'node:fs'; export const onLoad = (ctx) => appendFileSync('told', `load ${ctx.hookName} `);export const preToolExecution = () => {}; export const onDispose = () => appendFileSync('told', 'dispose');"
    engine = made.engine(text)
    engine.fire(CALL)
    engine.fire(CALL)
    engine.close()
    assert (made.folder / "told").read_text() == "load hook dispose"


def test_an_engine_that_never_called_it_starts_nothing_at_the_end(made):
    made.engine(
        "import {writeFileSync} from 'node:fs'; writeFileSync('told', ''); export const onDispose = () => {};"
    ).close()
    assert not (made.folder / "told").exists()


async def test_the_event_loop_goes_on(made):
    engine = made.engine(
        "export const preToolExecution = () => new Promise((yes) => setTimeout(yes, 200, {warn: 'w'}));"
    )
    ticks = []

    async def tick():
        while True:
            ticks.append(1)
            await asyncio.sleep(0.01)

    ticking = asyncio.ensure_future(tick())
    outs = await asyncio.gather(*(engine.afire(CALL) for _ in range(10)))
    ticking.cancel()
    assert [out.warnings for out in outs] == [("w",)] * 10
    assert len(ticks) > 5


async def test_cancelling_stops_it(made):
    engine = made.engine(
        "import {writeFileSync} from 'node:fs'; export const preToolExecution = () => new Promise((yes) => setTimeout(() => writeFileSync('late', ''), 700));"
    )
    engine.fire(events.PreToolExecution(tool="x", args={}, dry_run=True))
    task = asyncio.ensure_future(engine.afire(CALL))
    await asyncio.sleep(0.4)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.6)
    assert not (made.folder / "late").exists()


async def test_close_within_a_loop(made):
    engine = made.engine(
        "export const preToolExecution = () => ({warn: 'w'}); export const onDispose = () => {};"
    )
    assert (await engine.afire(CALL)).warnings == ("w",)
    engine.close()


def test_threads(made):
    engine = made.engine("export const preToolExecution = (event) => ({warn: event.args.command});")
    wrong = []

    def work(number):
        for step in range(20):
            text = f"{number} {step}"
            out = engine.fire(events.PreToolExecution(tool="bash", args={"command": text}))
            if out.warnings != (text,):
                wrong.append(out)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
