"""role.yaml: functions and switches of a role, its integrity digest, and JavaScript modules."""

from __future__ import annotations

import random
import shutil
import textwrap
from pathlib import Path

import pytest

from hookturn import events, paths
from hookturn.agents.rolebox.integrity import collation_key, integrity
from hookturn.project.assemble import Survey, assemble


class Role:
    """A project that is one role."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engines: list = []

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")

    def role(self, text: str) -> None:
        self.write("role.yaml", "name: Coder\nprompt: You write code.\n" + textwrap.dedent(text))

    def assemble(self, *, trust: bool = True, **options):
        if trust:
            Survey(self.folder, guards=True).trust_all()
        assembled = assemble(self.folder, log=False, builtins=False, **options)
        self.engines.append(assembled.engine)
        return assembled


@pytest.fixture
def role(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "MANAGED_CONFIG", str(tmp_path / "managed.yaml"))
    for name in ("XDG_CONFIG_HOME", "PI_CODING_AGENT_DIR", "DSH_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    made = Role(folder)
    yield made
    for engine in made.engines:
        engine.close()


def causes(assembled) -> list[str]:
    return [problem.cause for problem in assembled.problems]


def talk(engine, *messages) -> list[list[str]]:
    found = []
    with engine.session() as session:
        for message in messages:
            session.submit(message)
            with session.turn() as turn:
                found.append(turn.system_prompt([]))
    return found


REVIEW = """\
---
name: review
description: reviews code
params:
  focus: correctness
priority: 10
requires: [plan]
---

Review with focus on {focus}.
"""


# -- functions ----------------------------------------------------------------------------------------


def test_r8_a_roles_functions_come_from_its_folder(role):
    role.role("functions: [review]\n")
    role.write("functions/review.md", REVIEW)
    role.write("functions/plan.md", "Plan first.\n")
    assembled = role.assemble()
    assert assembled.problems == []
    assert talk(assembled.engine, "|review:security| x", "|plan| y") == [
        [],
        ["Review with focus on security.", "Plan first."],
    ]


def test_r8_a_function_of_the_user_serves_all_roles(role, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    role.role("functions: [tidy]\n")
    role.write(str(tmp_path / ".config/opencode/functions/tidy.md"), "Tidy up.\n")
    assert talk(role.assemble().engine, "|tidy| x") == [["Tidy up."]]


@pytest.mark.parametrize(
    ("text", "message", "parts", "told"),
    [
        ("auto_activate: [triage]\n", "hello", ["Triage."], []),
        ("auto_activate: [triage]\nhooks: {builtin: {auto_activate: true}}\n", "hello", ["Triage."], []),
        ("auto_activate: [triage]\nhooks: {builtin: {auto_activate: false}}\n", "hello", [], []),
        ("auto_activate: triage\n", "hello", [], ["auto_activate is no list, and has no effect"]),
        ("functions: [triage]\nlocked: very\n", "|triage| x", ["Triage."], ["locked is neither true nor false, and has no effect"]),
        ("disable_functions: [triage]\nfunctions: [triage]\n", "|triage| x", [], []),
    ],
)  # fmt: skip
def test_r8_auto_activate_in_both_spellings_and_locked(role, text, message, parts, told):
    role.role(text)
    role.write("functions/triage.md", "Triage.")
    assembled = role.assemble()
    assert causes(assembled) == told
    assert talk(assembled.engine, message) == [parts]


@pytest.mark.parametrize(("locked", "left"), [("true", ["Triage."]), ("false", [])])
def test_r8_locked_defends_against_the_end(role, locked, left):
    role.role(f"auto_activate: [triage]\nlocked: {locked}\n")
    role.write("functions/triage.md", "Triage.")
    engine = role.assemble().engine
    with engine.session() as session:
        session.submit("hello")
        session.event("function.deactivate", {"function": "triage"})
        with session.turn() as turn:
            assert turn.system_prompt([]) == left


def test_r8_names_that_the_role_does_not_have_are_dropped(role):
    role.role("functions: [review]\n")
    role.write("functions/review.md", "Review.")
    role.write("functions/hidden.md", "Hidden.")
    engine = role.assemble().engine
    with engine.session() as session:
        assert session.submit("|hidden|review| x").text == "x"
        with session.turn() as turn:
            assert turn.system_prompt([]) == ["Review."]


def test_r8_rolebox_own_functions_are_taken_off_and_told(role):
    role.role("")
    engine = role.assemble().engine
    with engine.session() as session:
        prompt = session.submit("|plan| build it")
    assert prompt.text == "build it"
    assert prompt.warnings == [
        "The function plan was called, but its text is not here, so it changes nothing."
    ]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("---\nname: f\ngate: user_approval\nobserve: []\n---\nText.", "{path}: gate, observe of a function has no effect here"),
        ("---\nname: [\n---\nText.", "the front matter of {path} is not YAML"),
        ("---\n- a\n---\nText.", "the front matter of {path} is no mapping"),
        ("---\nname: f\n---\n", "{path} has no text after its front matter"),
        ("---\nparams: [a]\n---\nText.", "{path}: params is no mapping of names and defaults"),
        ("---\npriority: high\n---\nText.", "{path}: priority is no number"),
        ("---\nrequires: 3\n---\nText.", "{path}: requires is no list of functions"),
        (None, "the function f has no text here"),
    ],
)  # fmt: skip
def test_what_is_wrong_or_not_supported_of_a_function_is_told(role, text, cause):
    role.role("functions: [f]\n")
    if text is not None:
        role.write("functions/f.md", text)
    (found,) = causes(role.assemble())
    assert found.startswith(cause.format(path=role.folder / "functions/f.md"))


def test_a_functions_name_makes_no_path(role):
    role.write("secret.md", "Secret.")
    role.role("functions: ['../secret', /etc/passwd]\n")
    assembled = role.assemble()
    assert len(causes(assembled)) == 2
    assert talk(assembled.engine, "|../secret| x") == [[]]


def test_a_changed_function_waits_for_trust(role):
    role.role("functions: [review]\n")
    role.write("functions/review.md", "Review.")
    role.assemble()
    role.write("functions/review.md", "Delete everything.")
    assembled = role.assemble(trust=False)
    assert talk(assembled.engine, "|review| x") == [[]]
    assert {row.name: row.state for row in assembled.plugins}["functions"] != "loaded"


def test_r5_a_hook_sees_the_state_of_functions(role):
    role.role(
        """\
        functions: [review]
        hooks:
          custom:
            - {name: look, events: [tool.execute.before], module: look.py}
        """
    )
    role.write("functions/review.md", REVIEW)
    role.write(
        "look.py",
        "def on_tool_before(ctx, input): ctx.skip(repr((ctx.getFunctionState('review'), ctx.get_function_state('no'))))\n",
    )
    engine = role.assemble().engine
    with engine.session(session_id="s") as session:
        session.submit("|review:security| x")
        out = engine.fire(events.PreToolExecution(tool="bash", args={}, session_id="s"))
    state = {"name": "review", "args": {"_0": "security"}, "locked": False, "phase": "gated"}
    assert out.reason == repr((state, None))


# -- hooks.builtin, hooks.recovery --------------------------------------------------------------------

READ_EMPTY = events.PostToolExecution(tool="read", args={}, result="", session_id="s")


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("", True),
        ("hooks: {recovery: {}}\n", True),
        ("hooks: {builtin: {recovery: true}}\n", True),
        ("hooks: {builtin: {recovery: false}}\n", False),
        ("hooks: {builtin: {recovery: false, empty_response: true}}\n", False),
        ("hooks: {builtin: {empty_response: false}}\n", False),
        ("hooks: {recovery: {enabled: false}}\n", False),
        ("hooks: {recovery: {max_total_attempts: 0}}\n", False),
        ("hooks: {recovery: {empty_response: {enabled: false}}}\n", False),
    ],
)
def test_r1_3_switches_and_default_chains(role, text, on):
    role.role(text)
    assembled = role.assemble()
    assert causes(assembled) == []
    assert (assembled.engine.fire(READ_EMPTY).recover is not None) is on


def test_r1_3_a_chain_of_the_roles_own(role):
    role.role(
        """\
        hooks:
          recovery:
            empty_response:
              chain:
                - {strategy: fallback_model, config: {model: small}}
                - {strategy: pray}
            session_error: {chain: retry}
            persist_state: false
            max_total: 3
        """
    )
    assembled = role.assemble()
    recover = assembled.engine.fire(READ_EMPTY).recover
    assert (recover.strategy, recover.config["model"]) == ("fallback_model", "small")
    assert assembled.engine.fire(READ_EMPTY).recover is None
    assert sorted(causes(assembled)) == [
        "expected a mapping with 'chain', a list of steps; the default chain of session_error holds",
        "persist_state has no effect here",
        "unknown key 'max_total' (did you mean 'max_total_attempts'?), which has no effect",
        "unknown strategy 'pray': the step is left out",
    ]


@pytest.mark.parametrize(("text", "there"), [("{bash_file_read_guard: true}", True), ("{}", False), ("{recovery: false, bash_file_read_guard: true}", False)])  # fmt: skip
def test_r1_3_guards(role, text, there):
    role.role(f"hooks: {{builtin: {text}}}\n")
    engine = role.assemble().engine
    assert ("guards" in engine.registry.plugins) is there
    with engine.session() as session, session.turn() as turn:
        turn.call_tool("bash", {"command": "cat a"}, execute=lambda **_: "long enough")
        assert len(turn.system_prompt([])) == int(there)


# -- R9: the digest -----------------------------------------------------------------------------------

ORDER = [
    "a1", "a10", "a2", "b", "B", "hooks/a.js", "hooks/A.js", "Hooks/b.js", "README.md", "role.yaml",
    "skills/x_y.md", "skills/x-y.md", "skills/x.md", "skills/xy.md",
]  # fmt: skip


def test_r9_the_root_collation():
    shuffled = list(ORDER)
    random.Random(1).shuffle(shuffled)
    assert sorted(shuffled, key=collation_key) == ORDER


@pytest.mark.parametrize(
    "words",
    [
        ["a b", "a_b", "a-b", "a,b", "a.b", "a(b", "a@b", "a&b", "a+b", "a$b", "a0b", "ab"],
        ["resume", "résumé", "resumes"],
        ["", "a"],
        ["ä", "z", "Z"],
    ],
)
def test_r9_more_of_the_root_collation(words):
    """As ``localeCompare`` of Node 20 orders them."""
    assert sorted(set(words), key=collation_key) == words


@pytest.fixture
def golden(tmp_path):
    folder = tmp_path / "golden"
    (folder / "hooks").mkdir(parents=True)
    (folder / "hooks/a.py").write_text("pass\n")
    (folder / "README.md").write_text("hi\n")
    (folder / "role.yaml").write_text("name: x\n")
    return folder


GOLDEN = "sha256-1c2938d9f546de9f00f01df31ce720b165882d117fc89cc3d434221d814c7f1d"


def test_r9_the_golden_vector(golden):
    assert integrity(str(golden)) == GOLDEN


def test_r9_links_are_followed_and_loops_end(golden, tmp_path):
    (tmp_path / "outside").write_text("hi\n")
    (golden / "README.md").unlink()
    (golden / "README.md").symlink_to(tmp_path / "outside")
    (golden / "loop").symlink_to(golden)
    (golden / "gone").symlink_to(tmp_path / "nowhere")
    assert integrity(str(golden)) == GOLDEN


@pytest.mark.parametrize(
    "change", [lambda f: (f / "README.md").write_text("ho\n"), lambda f: (f / "new").write_text("")]
)
def test_r9_any_change_shows(golden, change):
    change(golden)
    assert integrity(str(golden)) != GOLDEN


# -- JavaScript modules -------------------------------------------------------------------------------

node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")

QUALITY = """\
name: Quality-Conscious Coder
description: 警告调试代码并强制执行规范
hooks:
  custom:
    - name: no-console-log
      description: 检测文件写入中的遗漏 console.log
      events: [tool.execute.after]
      module: hooks/no-console-log.js
      filter:
        tools: [write, edit]
      priority: 10
      phase: after
"""

QUALITY_JS = """\
export default {
  onToolAfter: (ctx, { tool, args, output }) => {
    const content = typeof args?.content === "string" ? args.content : "";
    if (content.includes("console.log(")) {
      ctx.inject(`警告：${tool} 输出中发现 console.log()。`);
    }
  },
};
"""


@node
def test_the_documents_example_works_unmodified(role):
    role.write("role.yaml", QUALITY)
    role.write("hooks/no-console-log.js", QUALITY_JS)
    assembled = role.assemble()
    assert assembled.problems == []
    with assembled.engine.session() as session, session.turn() as turn:
        turn.call_tool("write", {"content": "console.log(1)"}, execute=lambda **_: "ok then")
        turn.call_tool("bash", {"command": "console.log("}, execute=lambda **_: "ok then")
        assert turn.system_prompt([]) == ["警告：write 输出中发现 console.log()。"]


JS = """\
export const onChatMessage = (ctx, {{ text }}) => ctx.inject(`${{ctx.hookName}} ${{ctx.config.word}} ${{ctx.sessionID}} ${{text}}`);
export function onToolBefore(ctx, {{ tool, args }}) {{
  if (tool === "bash") ctx.skip("no shell");
  args.checked = true;
}}
export async function onToolAfter(ctx, input) {{ ctx.retry(); }}
export const onSystemTransform = (ctx, {{ system }}) => {{ system.push("more"); }};
export const onEvent = (ctx, {{ type }}) => {{ throw new Error(type); }};
"""

JS_ROLE = """\
hooks:
  builtin: {recovery: false}
  custom:
    - name: js
      events: [chat.message, tool.execute.before, tool.execute.after, system.transform, event]
      module: hook.mjs
      config: {word: W}
      phase: before
"""


@node
def test_javascript_handlers_have_the_same_effects(role, hook_log):
    role.role(JS_ROLE)
    role.write("hook.mjs", JS.format())
    engine = role.assemble().engine
    with engine.session(session_id="s1") as session:
        session.submit("hi")
        with session.turn() as turn:
            assert turn.system_prompt(["base"]) == ["base", "more", "js W s1 hi"]
            assert turn.call_tool("bash", {}, execute=lambda **_: "x").status == "denied"
            seen = []
            turn.call_tool("save", {"a": 1}, execute=lambda **args: seen.append(args))
            assert seen == [{"a": 1, "checked": True}]
    assert engine.fire(events.PostToolExecution(tool="save", args={}, result="x")).recover.strategy == "retry"
    (failure,) = engine.fire(events.Event(type="session.idle")).failures
    assert "session.idle" in failure.message
    assert 'Custom hook "js" failed on event' in hook_log.of("custom-registry")


@node
async def test_javascript_runs_in_asynchronous_hosts(role):
    role.role(JS_ROLE)
    role.write("hook.mjs", JS.format())
    engine = role.assemble().engine
    out = await engine.afire(events.PreToolExecution(tool="bash", args={}))
    assert out.reason == "no shell"


@node
@pytest.mark.parametrize(("live", "decision"), [(False, None), (True, "deny")])
def test_javascript_runs_for_dry_events_only_when_asked(role, live, decision):
    role.role(JS_ROLE)
    role.write("hook.mjs", JS.format())
    engine = role.assemble(dry_run=True, live=live).engine
    assert engine.fire(events.PreToolExecution(tool="bash", args={})).decision == decision


@node
def test_a_javascript_file_that_does_not_load_costs_only_itself(role, hook_log):
    role.role(JS_ROLE)
    role.write("hook.mjs", "this is no javascript")
    engine = role.assemble().engine
    for _ in range(2):
        assert len(engine.fire(events.MessageReceived(text="x")).failures) == 1
    assert hook_log.of("custom-loader") == ["Failed to load custom hook module"]


def test_a_missing_javascript_file_is_told(role):
    role.role(JS_ROLE)
    assert causes(role.assemble()) == [f"{role.folder / 'hook.mjs'} does not exist"]


def test_without_node_the_hook_says_what_is_missing(role, monkeypatch):
    role.role(JS_ROLE)
    role.write("hook.mjs", JS.format())
    monkeypatch.setenv("PATH", str(role.folder))
    assembled = role.assemble()
    (cause,) = causes(assembled)
    assert cause.startswith("hooks in JavaScript need Node")
    (failure,) = assembled.engine.fire(events.MessageReceived(text="x")).failures
    assert "need Node" in failure.message
