"""role.yaml with Python modules: each row of the format's facts (R1 to R7, R10, R11) with real files and the engine of a project."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest

from hookturn import events, paths
from hookturn.agents.rolebox import config, module, roles
from hookturn.project.assemble import Survey, assemble
from hookturn.runners.entry import HookEntry
from hookturn.spec.errors import RegistrationError


class Roles:
    """A project with roles, and short ways to ask its engine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.log = folder / "log.txt"
        self.engine = None

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def role(self, hooks: str, path: str = "role.yaml", **more: str) -> None:
        head = f"name: {more.pop('name', 'Coder')}\nprompt: You write code.\n"
        head += "".join(f"{key}: {value}\n" for key, value in more.items())
        self.write(path, head + textwrap.dedent(hooks))

    def assemble(self, *, trust: bool = True, **options):
        if trust:
            Survey(self.folder, guards=True).trust_all()
        assembled = assemble(self.folder, log=False, builtins=False, **options)
        self.engine = assembled.engine
        return assembled

    def noted(self) -> list[str]:
        return self.log.read_text().split("\n")[:-1] if self.log.exists() else []

    # events as the documents name them

    def chat(self, text="hello", **more):
        return self.engine.fire(events.MessageReceived(text=text, **more))

    def before(self, tool="write", args=None, **more):
        return self.engine.fire(events.PreToolExecution(tool=tool, args=args or {}, **more))

    def after(self, tool="write", args=None, result="done", **more):
        return self.engine.fire(events.PostToolExecution(tool=tool, args=args or {}, result=result, **more))

    def system(self, *parts, **more):
        return self.engine.fire(events.SystemPrompt(parts=list(parts), **more))

    def event(self, kind="session.idle", **properties):
        return self.engine.fire(events.Event(type=kind, properties=properties))


@pytest.fixture
def role(tmp_path, monkeypatch):
    managed = tmp_path / "managed.yaml"
    monkeypatch.setattr(paths, "MANAGED_CONFIG", str(managed))
    for name in ("XDG_CONFIG_HOME", "PI_CODING_AGENT_DIR", "DSH_HOME"):
        monkeypatch.delenv(name, raising=False)
    module.clear()
    made = Roles(tmp_path / "project")
    yield made
    if made.engine is not None:
        made.engine.close()


def hook(name="probe", events="chat.message", module="hooks/probe.py", **more) -> str:
    lines = [f"    - name: {name}", f"      events: [{events}]", f"      module: {module}"]
    lines += [f"      {key}: {value}" for key, value in more.items()]
    return "\n".join(lines) + "\n"


def custom(*hooks: str) -> str:
    return "hooks:\n  custom:\n" + "".join(hooks)


def causes(assembled) -> list[str]:
    return [problem.cause for problem in assembled.problems]


def rows(assembled) -> dict[str, str]:
    return {row.name: row.state for row in assembled.plugins if row.source.startswith("role")}


RECORD = """
import json, os
LOG = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "log.txt")
def note(*what):
    with open(LOG, "a") as file:
        file.write(" ".join(str(word) for word in what) + "\\n")
"""


def noter(path: Path) -> str:
    """Return code that notes words in a file."""
    return f"def note(*what):\n    with open({str(path)!r}, 'a') as file: print(*what, file=file)\n"


# -- R1: the block ------------------------------------------------------------------------------------


def test_r1_the_documents_example_in_python(role):
    role.write(
        "role.yaml",
        """\
        name: Quality-Conscious Coder
        description: warns of debug code
        hooks:
          custom:
            - name: no-print
              description: finds print calls that were left over
              events: [tool.execute.after]
              module: hooks/no_print.py
              filter:
                tools: [write, edit]
              priority: 10
              phase: after
        """,
    )
    role.write(
        "hooks/no_print.py",
        """\
        def onToolAfter(ctx, input):
            content = input["args"].get("content", "")
            if "print(" in content:
                ctx.inject(f"{input['tool']}: print() was left over.")
        """,
    )
    assembled = role.assemble()
    assert assembled.problems == []
    with role.engine.session() as session, session.turn() as turn:
        turn.call_tool("write", {"content": "print(1)"}, execute=lambda **_: "ok")
        turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "listing")
        assert turn.system_prompt(["base"]) == ["base", "write: print() was left over."]
        assert turn.system_prompt(["base"]) == ["base"]


def test_r1_defaults_are_priority_50_and_phase_after(role):
    role.write("hooks/probe.py", "def on_chat_message(ctx, input): pass\n")
    role.role(custom(hook()))
    role.assemble()
    (step,) = [step for step in role.engine.plan("on_message_received").steps if step.name == "probe"]
    assert (step.tier_name, step.priority) == ("after", 50)


@pytest.mark.parametrize(
    ("text", "value"),
    [("{env:ROLE_WORD}", "from env"), ("{env:ROLE_MISSING_WORD}", "{env:ROLE_MISSING_WORD}")],
)
def test_r1_environment_variables_fill_texts_and_unset_ones_stay(role, monkeypatch, text, value):
    monkeypatch.setenv("ROLE_WORD", "from env")
    monkeypatch.setenv("ROLE_FILE", "probe")
    role.write("hooks/probe.py", RECORD + "def on_chat_message(ctx, input): note(ctx.config['word'])\n")
    role.role(custom(hook(module="'hooks/{env:ROLE_FILE}.py'", config=f"{{word: '{text}'}}")))
    role.assemble()
    role.chat()
    assert role.noted() == [value]


@pytest.mark.parametrize("where", ["role", "workspace", "absolute"])
def test_r2_a_module_path_starts_at_the_role_then_at_the_workspace(role, where):
    text = RECORD.replace(
        "os.path.dirname(os.path.dirname(os.path.abspath(__file__)))", repr(str(role.folder))
    )
    text += f"def on_chat_message(ctx, input): note({where!r})\n"
    if where != "absolute":
        role.write("probe.py", text.replace(f"note({where!r})", "note('workspace')"))
    if where == "role":
        role.write("rolebox/a/probe.py", text)
    path = str(role.write("elsewhere/probe.py", text)) if where == "absolute" else "probe.py"
    role.role(custom(hook(module=path)), path="rolebox/a/role.yaml")
    role.assemble()
    role.chat()
    assert role.noted() == [where]


# -- R1.2: faults cost only themselves ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        (hook("bad", "chat.mesage"), "unknown event 'chat.mesage' (did you mean 'chat.message'?), at which the hook never runs"),
        ("    - name: bad\n      module: hooks/probe.py\n", "the hook has no events, and never runs"),
        ("    - name: bad\n      events: chat.message\n      module: hooks/probe.py\n", "the hook has events that are no list, and never runs"),
        ("    - name: bad\n      events: [chat.message]\n", "the hook bad has no module, and never runs"),
        (hook("bad", phase="during"), "the phase 'during' is none, so the hook bad never runs"),
        ("    - just a text\n", "expected a hook"),
        (hook("bad", module="hooks/missing.py"), "{folder}/hooks/missing.py cannot be read: No such file or directory"),
        (hook("bad", module="hooks/broken.py"), "{folder}/hooks/broken.py:1:5 is not Python: invalid syntax"),
    ],
)  # fmt: skip
def test_r1_2_a_bad_entry_is_told_and_costs_only_itself(role, bad, cause):
    role.write("hooks/probe.py", RECORD + "def on_chat_message(ctx, input): note(ctx.hookName)\n")
    role.write("hooks/broken.py", "def (:\n")
    role.role(custom(hook("first"), bad, hook("last")))
    assembled = role.assemble()
    assert causes(assembled) == [cause.format(folder=role.folder)]
    role.chat()
    assert role.noted() == ["first", "last"]


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ({"priority": "high"}, "the priority 'high' is no number; 50 counts"),
        ({"priority": "10.5"}, "the priority 10.5 counts as 10"),
        ({"prioritty": "1"}, "unknown key 'prioritty' (did you mean 'priority'?), which has no effect"),
        ({"config": "[1]"}, "expected a mapping"),
        ({"filter": "write"}, "expected a mapping; the hook is not filtered"),
        ({"filter": "{tools: write}"}, "expected a list of names; it does not filter"),
        ({"filter": "{tool: [write]}"}, "unknown key 'tool' (did you mean 'tools'?), which has no effect"),
    ],
)
def test_r1_2_a_bad_value_is_told_and_the_hook_runs(role, more, cause):
    role.write("hooks/probe.py", RECORD + "def on_chat_message(ctx, input): note('ran')\n")
    role.role(custom(hook(**more)))
    assert causes(role.assemble()) == [cause]
    role.chat()
    assert role.noted() == ["ran"]


@pytest.mark.parametrize("hooks", ["hooks: yes\n", "hooks: 3\n", "hooks: [a]\n"])
def test_r1_2_hooks_that_are_no_mapping_are_told(role, hooks):
    role.role(hooks)
    assert causes(role.assemble()) == ["expected a mapping"]


def test_r1_2_hooks_that_are_null_are_none(role):
    role.role("hooks:\n")
    assert causes(role.assemble()) == []


def test_r1_2_hooks_of_one_name_both_run(role):
    role.write(
        "hooks/probe.py", RECORD + "def on_chat_message(ctx, input): note(ctx.hookName, ctx.config['n'])\n"
    )
    role.role(custom(hook("same", config="{n: 1}"), hook("same", config="{n: 2}")))
    assert causes(role.assemble()) == ["another hook is called same, too; both run"]
    role.chat()
    assert role.noted() == ["same 1", "same 2"]


def test_r1_2_an_unknown_switch_is_told(role):
    role.role("hooks:\n  builtin: {edit_errors: true, json_error: 1}\n")
    assert causes(role.assemble()) == [
        "unknown key 'edit_errors' (did you mean 'edit_error'?), which has no effect",
        "json_error is neither true nor false, so it is off",
    ]


def test_r1_2_problems_have_their_place(role):
    role.role(custom(hook("bad", "chat.mesage")))
    (problem,) = role.assemble().problems
    assert str(problem).startswith("role.yaml:6:16: hooks.custom[0].events[0]: unknown event 'chat.mesage'")


# -- files that are something else --------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: reader\nrules:\n- verbs: [get]\n",
        "apiVersion: v1\nkind: Role\n---\napiVersion: v1\nkind: RoleBinding\n",
        "{{- if .Values.rbac }}\napiVersion: v1\nkind: Role\n{{- end }}\n",
        "- hosts: all\n  tasks: []\n",
        "name: web\ndescription: an Ansible role\ndependencies: []\n",
        "",
        "\x00\x01",
    ],
)
def test_a_role_yaml_of_somebody_else_is_passed_over_in_silence(role, text):
    role.write("role.yaml", text)
    assembled = role.assemble()
    assert (assembled.problems, rows(assembled)) == ([], {})


def test_a_role_without_a_name_is_skipped_and_told(role):
    role.write("role.yaml", "hooks:\n  custom:\n" + hook())
    assert causes(role.assemble()) == ["a role needs a name; this one is skipped"]


# -- R2, R2.1: modules and handlers -------------------------------------------------------------------

ALL = "chat.message, tool.execute.before, tool.execute.after, system.transform, event"

NAMES = {
    "camel": ("onChatMessage", "onToolBefore", "onToolAfter", "onSystemTransform", "onEvent"),
    "snake": ("on_chat_message", "on_tool_before", "on_tool_after", "on_system_transform", "on_event"),
}


def handlers(names, kind: str) -> str:
    if kind == "async":
        return "".join(f"async def {name}(ctx, input): note({name!r}, json.dumps(input))\n" for name in names)
    if kind == "plain":
        return "".join(f"def {name}(ctx, input): note({name!r}, json.dumps(input))\n" for name in names)
    if kind == "object":
        body = "".join(
            f"    def {name}(self, ctx, input): note({name!r}, json.dumps(input))\n" for name in names
        )
        return f"class Hooks:\n{body}default = Hooks()\n"
    if kind == "class":
        body = "".join(
            f"    def {name}(self, ctx, input): note({name!r}, json.dumps(input))\n" for name in names
        )
        return f"class default:\n{body}"
    items = ", ".join(f"{name!r}: lambda ctx, input: note({name!r}, json.dumps(input))" for name in names)
    return f"default = {{{items}}}\n"


@pytest.mark.parametrize("kind", ["plain", "async", "object", "class", "dict"])
@pytest.mark.parametrize("style", ["camel", "snake"])
def test_r2_1_every_handler_in_every_form(role, style, kind):
    names = NAMES[style]
    role.write("hooks/probe.py", RECORD + handlers(names, kind))
    role.role(custom(hook(events=ALL)))
    assert role.assemble().problems == []
    role.chat("hi")
    role.before("bash", {"command": "ls"})
    role.after("bash", {"command": "ls"}, "a b")
    role.system("one", "two")
    role.event("session.idle", sessionID="s")
    assert role.noted() == [
        f"{names[0]} {json.dumps({'text': 'hi'})}",
        f"{names[1]} {json.dumps({'tool': 'bash', 'args': {'command': 'ls'}})}",
        f"{names[2]} {json.dumps({'tool': 'bash', 'args': {'command': 'ls'}, 'output': 'a b'})}",
        f"{names[3]} {json.dumps({'system': ['one', 'two']})}",
        f"{names[4]} {json.dumps({'type': 'session.idle', 'properties': {'sessionID': 's'}})}",
    ]


async def test_r2_1_handlers_run_in_asynchronous_hosts_too(role):
    role.write("hooks/probe.py", RECORD + handlers(NAMES["snake"], "async"))
    role.role(custom(hook(events=ALL)))
    role.assemble()
    await role.engine.afire(events.MessageReceived(text="hi"))
    await role.engine.afire(events.SystemPrompt(parts=["one"]))
    assert [line.split(" ")[0] for line in role.noted()] == ["on_chat_message", "on_system_transform"]


@pytest.mark.parametrize(
    ("signature", "said"),
    [
        ("ctx, input", "input.tool, input['args']['path']"),
        ("ctx, tool, args", "tool, args['path']"),
        ("ctx, args", "'write', args['path']"),
        ("ctx", "'write', 'a'"),
        ("", "'write', 'a'"),
    ],
)
def test_r2_1_a_handler_takes_what_its_parameters_name(role, signature, said):
    role.write("hooks/probe.py", RECORD + f"def on_tool_before({signature}): note({said})\n")
    role.role(custom(hook(events="tool.execute.before")))
    role.assemble()
    role.before("write", {"path": "a"})
    assert role.noted() == ["write a"]


def test_r2_1_changing_the_text_of_a_message_has_no_effect(role):
    role.write("hooks/probe.py", "def on_chat_message(ctx, input): input['text'] = 'other'\n")
    role.role(custom(hook()))
    role.assemble()
    out = role.chat("hello")
    assert (out.event.text, out.rewrites) == ("hello", ())


def test_r2_1_arguments_edited_in_place_reach_the_tool(role):
    role.write("hooks/probe.py", "def on_tool_before(ctx, input): input['args']['opts']['force'] = False\n")
    role.role(custom(hook(events="tool.execute.before")))
    role.assemble()
    seen = []
    with role.engine.session() as session, session.turn() as turn:
        turn.call_tool("deploy", {"opts": {"force": True}}, execute=lambda **args: seen.append(args))
    assert seen == [{"opts": {"force": False}}]


def test_r2_1_the_system_prompt_edited_in_place_takes_effect(role):
    role.write(
        "hooks/probe.py",
        "def on_system_transform(ctx, system):\n    system.insert(0, 'first')\n    del system[2]\n",
    )
    role.role(custom(hook(events="system.transform")))
    role.assemble()
    out = role.system("one", "two")
    assert out.event.parts == ["first", "one"]
    assert out.rewrites[0].by == "probe"


def test_r2_1_a_system_prompt_of_anything_but_texts_is_a_failure(role):
    role.write("hooks/probe.py", "def on_system_transform(ctx, system): system.append(3)\n")
    role.role(custom(hook(events="system.transform")))
    role.assemble()
    out = role.system("one")
    assert out.event.parts == ["one"]
    assert [failure.hook for failure in out.failures] == ["probe"]


def test_r2_1_return_values_are_ignored_but_answers_of_hookturn_count(role):
    role.write(
        "hooks/probe.py",
        """\
        from hookturn import Deny

        def on_tool_before(ctx, input):
            return Deny("no") if input.tool == "bash" else {"deny": "no"}
        """,
    )
    role.role(custom(hook(events="tool.execute.before")))
    role.assemble()
    assert role.before("bash").decision == "deny"
    assert role.before("write").decision is None


def test_r2_1_a_missing_handler_is_no_failure_but_is_told(role):
    role.write("hooks/probe.py", RECORD + "def on_chat_message(ctx, input): note('chat')\n")
    role.role(custom(hook(events="chat.message, event")))
    assert causes(role.assemble()) == [
        "hooks/probe.py has no handler for event, so the hook never runs there"
    ]
    role.chat()
    assert role.event().failures == ()
    assert role.noted() == ["chat"]


def test_r2_a_module_without_any_handler_is_told(role):
    role.write("hooks/probe.py", "def on_chat_mesage(ctx, input): pass\n")
    role.role(custom(hook()))
    assembled = role.assemble()
    assert "has no on_chat_message (did you mean 'on_chat_mesage'?)" in causes(assembled)[0]
    assert rows(assembled)["probe"] == "failed"


def test_r2_each_entry_has_a_module_of_its_own(role):
    role.write(
        "hooks/probe.py",
        RECORD
        + "count = 0\ndef on_chat_message(ctx, input):\n    global count\n    count += 1\n    note(ctx.hookName, count)\n",
    )
    role.role(custom(hook("one"), hook("two")))
    role.assemble()
    role.chat()
    role.chat()
    assert role.noted() == ["one 1", "two 1", "one 2", "two 2"]


# -- R2: the load cache -------------------------------------------------------------------------------


def entry_of(path: Path) -> HookEntry:
    extra = {"name": "probe", "events": ["chat.message"], "functions": "", "project": str(path.parent)}
    return HookEntry(name="probe", kind="module", run=str(path), base_dir="/", extra=extra)


def test_r2_a_module_that_failed_is_not_tried_again_before_it_changes(tmp_path, hook_log):
    module.clear()
    path = tmp_path / "probe.py"
    runs = tmp_path / "runs"
    path.write_text(f"{noter(runs)}note('x')\nraise OSError('broken')\n")
    for _ in range(3):
        with pytest.raises(RegistrationError, match="broken"):
            config.make(entry_of(path), {}, {})
    assert runs.read_text() == "x\n"
    assert len(hook_log.of("custom-loader")) == 1
    path.write_text("def on_chat_message(ctx, input): pass\n")
    assert config.make(entry_of(path), {}, {}).hookturn_name == "probe"


def test_r2_clear_forgets_failures(tmp_path):
    module.clear()
    path = tmp_path / "probe.py"
    runs = tmp_path / "runs"
    path.write_text(f"{noter(runs)}note('x')\nraise OSError('broken')\n")
    for _ in range(2):
        with pytest.raises(RegistrationError):
            config.make(entry_of(path), {}, {})
        module.clear()
    assert runs.read_text() == "x\nx\n"


# -- R3: order ----------------------------------------------------------------------------------------


def test_r3_before_core_after_then_priority_then_the_files_order(role):
    role.write("hooks/probe.py", RECORD + "def on_tool_before(ctx, input): note(ctx.hookName)\n")
    at = "tool.execute.before"
    role.role(
        custom(
            hook("after-50-a", at),
            hook("after-10", at, priority=10, phase="after"),
            hook("before-50", at, phase="before"),
            hook("before-10", at, priority=10, phase="before"),
            hook("before-minus", at, priority=-5, phase="before"),
            hook("after-50-b", at, phase="after"),
        )
    )
    role.assemble(host=Host(role))
    role.before("bash")
    assert role.noted() == [
        "before-minus",
        "before-10",
        "before-50",
        "the host",
        "after-10",
        "after-50-a",
        "after-50-b",
    ]


class Host:
    """The host's own handler."""

    def __init__(self, role) -> None:
        from hookturn import hookimpl

        def handle():
            with role.log.open("a") as file:
                file.write("the host\n")

        self.pre_tool_execution = hookimpl(handle)


def test_r3_builtin_hooks_run_around_all_custom_ones_whatever_their_priority(role):
    role.write(
        "hooks/probe.py", "def on_tool_before(ctx, input): pass\ndef on_tool_after(ctx, input): pass\n"
    )
    at = "tool.execute.before, tool.execute.after"
    role.role(
        "hooks:\n  builtin: {bash_file_read_guard: true}\n  custom:\n"
        + hook("early", at, priority=-100, phase="before")
        + hook("late", at, priority=100, phase="after")
    )
    role.assemble()
    names = [
        step.name for step in role.engine.plan("pre_tool_execution").steps if step.name != "self-protection"
    ]
    assert names == ["guards", "early", "late"]
    names = [step.name for step in role.engine.plan("post_tool_execution").steps]
    assert names == ["early", "late", "guards", "recovery"]


@pytest.mark.parametrize(
    "fire",
    [
        lambda role: role.chat(""),
        lambda role: role.before("bash"),
        lambda role: role.after("bash", session_id="s"),
        lambda role: role.after(""),
        lambda role: role.system("one"),
        lambda role: role.event("session.idle"),
    ],
)
def test_r3_the_after_phase_always_runs(role, fire):
    """Without a text, for tools that rolebox does not know, without active functions, without a session id."""
    role.write(
        "hooks/probe.py",
        RECORD + "".join(f"def {name}(ctx, input): note('ran')\n" for name in NAMES["snake"]),
    )
    role.role(custom(hook(events=ALL)))
    role.assemble()
    fire(role)
    assert role.noted() == ["ran"]


@pytest.mark.parametrize(
    ("status", "runs"), [("ok", 1), ("error", 1), ("timeout", 1), ("denied", 0), ("replied", 0)]
)
def test_r3_after_a_tool_is_after_its_execution(role, status, runs):
    role.write("hooks/probe.py", RECORD + "def on_tool_after(ctx, input): note('ran')\n")
    role.role(custom(hook(events="tool.execute.after")))
    role.assemble()
    role.after("bash", status=status)
    assert len(role.noted()) == runs


# -- R4: filters --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tools", "tool", "runs"),
    [
        ("[write, edit]", "write", True),
        ("[write, edit]", "bash", False),
        ("[write]", "edit", False),
        ("[write]", "Write", True),  # another agent's tool of this kind
        ("[edit]", "bash", False),
        ("[wri*]", "write", False),
        ("[write]", "", True),
        ("[]", "write", False),
        ("[]", "", True),
        ("[webfetch]", "WebFetch", True),
        ("[bash]", "run_shell_command", True),
    ],
)
@pytest.mark.parametrize("event", ["tool.execute.before", "tool.execute.after"])
def test_r4_tools_are_compared_exactly(role, event, tools, tool, runs):
    role.write(
        "hooks/probe.py", RECORD + "def on_tool_before(c, i): note('x')\ndef on_tool_after(c, i): note('x')\n"
    )
    role.role(custom(hook(events=event, filter=f"{{tools: {tools}}}")))
    role.assemble()
    table = {"Write": {"file_path": "a"}, "WebFetch": {"url": "u"}, "run_shell_command": {"command": "ls"}}
    args = table.get(tool, {})
    (role.before if event.endswith("before") else role.after)(tool, args)
    assert role.noted() == (["x"] if runs else [])


@pytest.mark.parametrize(
    ("types", "kind", "runs"),
    [
        ("[session.idle]", "session.idle", True),
        ("[session.idle]", "session.error", False),
        ("[session.*]", "session.idle", False),
        ("[]", "session.idle", False),
        ("[message.updated, session.deleted]", "session.deleted", True),
        ("[lsp.client.diagnostics]", "lsp.client.diagnostics", True),
    ],
)
def test_r4_event_types_are_compared_exactly(role, types, kind, runs):
    role.write("hooks/probe.py", RECORD + "def on_event(ctx, input): note(input.type)\n")
    role.role(custom(hook(events="event", filter=f"{{eventTypes: {types}}}")))
    role.assemble()
    role.event(kind)
    assert role.noted() == ([kind] if runs else [])


@pytest.mark.parametrize(
    ("filter", "fire"),
    [
        ("{tools: [write]}", lambda role: role.event()),
        ("{eventTypes: [session.error]}", lambda role: role.before("bash")),
        ("{tools: [write], eventTypes: [session.error]}", lambda role: role.chat()),
    ],
)
def test_r4_a_filter_of_another_kind_is_ignored(role, filter, fire):
    role.write(
        "hooks/probe.py",
        RECORD + "".join(f"def {name}(ctx, input): note('ran')\n" for name in NAMES["snake"]),
    )
    role.role(custom(hook(events=ALL, filter=filter)))
    role.assemble()
    fire(role)
    assert role.noted() == ["ran"]


# -- R5: the context ----------------------------------------------------------------------------------

CONTEXT = """
def on_chat_message(ctx, input):
    note(ctx.hookName, ctx.hook_name, ctx.config, ctx.sessionID, ctx.session_id, ctx.agent)
    note(ctx.getBlocks(), ctx.getFunctionState("plan"), json.dumps(ctx.getDispatchState()))
on_tool_before = on_event = on_system_transform = on_tool_after = on_chat_message
def on_load(ctx):
    note(ctx.hookName, ctx.config, ctx.sessionID, ctx.agent)
    ctx.inject("nothing")
"""


def test_r5_name_settings_session_and_agent_are_true_in_every_handler(role):
    role.write("hooks/probe.py", RECORD + CONTEXT)
    role.role(custom(hook(events="chat.message, tool.execute.before, event", config="{word: TODO}")))
    role.assemble()
    role.chat(session_id="s1", agent="coder")
    role.before("bash", session_id="s2", agent="other")
    line = "probe probe {'word': 'TODO'}"
    empty = '[] None {"activeTaskCount": 0, "tasks": []}'
    assert role.noted() == [
        "probe {'word': 'TODO'} None None",
        f"{line} s1 s1 coder",
        empty,
        f"{line} s2 s2 other",
        empty,
    ]


def test_r5_settings_are_undefined_where_there_are_none(role):
    role.write("hooks/probe.py", RECORD + "def on_chat_message(ctx, input): note(ctx.config)\n")
    role.role(custom(hook()))
    role.assemble()
    role.chat()
    assert role.noted() == ["None"]


def test_r5_inject_takes_texts_only(role):
    role.write("hooks/probe.py", "def on_chat_message(ctx, input): ctx.inject(3)\n")
    role.role(custom(hook()))
    role.assemble()
    assert "inject() takes a str" in role.chat().failures[0].message


@pytest.mark.parametrize(("level", "method"), [("WARNING", "warn"), ("WARNING", "warning"), ("INFO", "info")])
def test_r5_the_log_is_the_hooks_own(role, hook_log, level, method):
    role.write("hooks/probe.py", f"def on_chat_message(ctx, input): ctx.log.{method}('said')\n")
    role.role(custom(hook()))
    role.assemble()
    role.chat()
    (record,) = [item for item in hook_log if item["extra"].get("hook") == "hook:probe"]
    assert (record["message"], record["level"].name) == ("said", level)


BLOCKS = [
    "<env>\nLinux\n</env>",
    "plain",
    "  <my-rules kind='x'>be good</my-rules>",
    "text <skills>a b</skills> end",
]


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("ctx.replaceBlock('env', 'E')", ["E", *BLOCKS[1:]]),
        ("ctx.replace_block('my-rules', 'R')", [*BLOCKS[:2], "R", BLOCKS[3]]),
        ("ctx.removeBlock('env')", BLOCKS[1:]),
        ("ctx.remove_block('skills')", [*BLOCKS[:3], "text  end"]),
        ("ctx.replaceBlock('skills', 'S')", [*BLOCKS[:3], "text S end"]),
        ("ctx.replaceBlock('en', 'E')", BLOCKS),
        ("ctx.replaceBlock('nothing', 'E')", BLOCKS),
        ("ctx.removeBlock('text')", BLOCKS),
    ],
)
def test_r5_blocks_are_replaced_and_removed_by_their_whole_tag(role, code, parts):
    role.write("hooks/probe.py", f"def on_system_transform(ctx, input): {code}\n")
    role.role(custom(hook(events="system.transform")))
    role.assemble()
    assert role.system(*BLOCKS).event.parts == parts


def test_r5_get_blocks_tells_tags_with_hyphens_too(role):
    role.write(
        "hooks/probe.py", RECORD + "def on_system_transform(ctx, input): note(json.dumps(ctx.getBlocks()))\n"
    )
    role.role(custom(hook(events="system.transform")))
    role.assemble()
    role.system(*BLOCKS)
    found = json.loads(role.noted()[0])
    assert [block["tag"] for block in found] == ["env", "text", "my-rules", "text"]
    assert [block["content"] for block in found] == BLOCKS


@pytest.mark.parametrize("method", ["getBlocks", "get_blocks"])
def test_r5_outside_of_the_system_prompt_there_are_no_blocks(role, method):
    role.write(
        "hooks/probe.py",
        RECORD
        + f"def on_chat_message(ctx, input):\n    ctx.replaceBlock('a', 'b')\n    note(ctx.{method}())\n",
    )
    role.role(custom(hook()))
    role.assemble()
    role.chat()
    assert role.noted() == ["[]"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [("ctx.skip('not on a Friday')", "not on a Friday"), ("ctx.skip()", "The hook probe refused this call.")],
)
@pytest.mark.parametrize("how", ["def", "async def"])
def test_r5_skip_is_a_real_veto(role, how, code, reason):
    role.write("hooks/probe.py", f"{how} on_tool_before(ctx, input): {code}\n")
    role.role(custom(hook(events="tool.execute.before", phase="before")))
    role.assemble()
    ran = []
    with role.engine.session() as session, session.turn() as turn:
        result = turn.call_tool("deploy", {}, execute=lambda: ran.append(1))
    assert (result.status, result.denied_by, ran) == ("denied", "probe", [])
    assert role.before("deploy").reason == reason


def test_r5_skip_elsewhere_has_no_effect_and_says_so(role, hook_log):
    role.write("hooks/probe.py", "def on_chat_message(ctx, input): ctx.skip('x')\n")
    role.role(custom(hook()))
    role.assemble()
    out = role.chat()
    assert (out.decision, out.failures) == (None, ())
    assert hook_log.of("probe") == ["skip() has no effect in chat.message: there is no call to refuse"]


def test_r5_retry_after_a_tool_is_a_recover(role):
    role.write("hooks/probe.py", "def on_tool_after(ctx, input): ctx.retry('flaky', delay_ms=5)\n")
    role.role(custom(hook(events="tool.execute.after")))
    role.assemble()
    recover = role.after("bash").recover
    assert (recover.strategy, dict(recover.config)) == ("retry", {"reason": "flaky", "delay_ms": 5})


def test_r5_retry_before_a_tool_refuses_and_asks_for_another_try(role):
    role.write("hooks/probe.py", "def on_tool_before(ctx, input): ctx.retry('give a path')\n")
    role.role(custom(hook(events="tool.execute.before")))
    role.assemble()
    out = role.before("write")
    assert (out.decision, out.reason, out.code, out.advice) == (
        "deny",
        "give a path",
        "retry",
        "Correct the call and try again.",
    )


@pytest.mark.parametrize("accepts", [["Recover"], []])
def test_r5_retry_at_a_hosts_event_is_a_recover_or_a_reminder(role, accepts):
    role.write("hooks/probe.py", "def on_event(ctx, input): ctx.retry('again')\n")
    role.role("hooks:\n  builtin: {recovery: false}\n  custom:\n" + hook(events="event"))
    role.assemble()
    with role.engine.session() as session:
        out = session.event("session.error", {}, accepts=accepts)
        with session.turn() as turn:
            parts = turn.system_prompt([])
    assert (out.recover is not None, parts) == ((True, []) if accepts else (False, ["again"]))


# -- R6: inject ---------------------------------------------------------------------------------------


@pytest.fixture
def injecting(role):
    """A role whose hook injects the message, word by word."""
    role.write(
        "hooks/probe.py",
        "def on_chat_message(ctx, input):\n    for word in input.text.split(','): ctx.inject(word)\n",
    )
    role.role(custom(hook()))
    role.assemble()
    return role


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("first", ["base", "first"]),
        ("first,second", ["base", "first\nsecond"]),
        (",first", ["base", "first"]),
        ("", ["base"]),
    ],
)
def test_r6_texts_join_with_a_newline_and_come_as_one_part_once(injecting, words, parts):
    with injecting.engine.session() as session:
        session.submit(words)
        with session.turn() as turn:
            assert turn.system_prompt(["base"]) == parts
            assert turn.system_prompt(["base"]) == ["base"]


def test_r6_sessions_are_kept_apart(injecting):
    with injecting.engine.session(session_id="a") as one, injecting.engine.session(session_id="b") as two:
        one.submit("for a")
        two.submit("for b")
        with one.turn() as turn:
            assert turn.system_prompt([]) == ["for a"]
        with two.turn() as turn:
            assert turn.system_prompt([]) == ["for b"]


@pytest.mark.parametrize(
    ("phase", "first", "second"), [("before", ["note"], ["note"]), ("after", [], ["note"])]
)
def test_r6_inject_while_the_prompt_is_built_lands_by_phase(role, phase, first, second):
    role.write("hooks/probe.py", "def on_system_transform(ctx, input): ctx.inject('note')\n")
    role.role(custom(hook(events="system.transform", phase=phase)))
    role.assemble()
    with role.engine.session() as session, session.turn() as turn:
        assert turn.system_prompt([]) == first
        assert turn.system_prompt([]) == second


def test_r6_an_event_without_a_session_id_injects_into_its_own_session(role):
    role.write("hooks/probe.py", "def on_event(ctx, input): ctx.inject('idle')\n")
    role.role(custom(hook(events="event")))
    role.assemble()
    with role.engine.session() as session:
        session.event("session.idle", {})
        with session.turn() as turn:
            assert turn.system_prompt([]) == ["idle"]


# -- R7: lifecycle ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["def", "async def"])
def test_r7_on_load_once_and_on_dispose_once_for_each_entry(role, how):
    role.write(
        "hooks/probe.py",
        RECORD + f"{how} onLoad(ctx): note('load', ctx.config['n'])\n"
        f"{how} onDispose(ctx): note('dispose', ctx.config['n'])\ndef on_chat_message(ctx, input): pass\n",
    )
    # Two hooks of one name: both are disposed of.
    role.role(custom(hook("same", config="{n: 1}"), hook("same", config="{n: 2}")))
    role.assemble()
    role.chat()
    role.engine.close()
    role.engine.close()
    assert role.noted() == ["load 1", "load 2", "dispose 2", "dispose 1"]


@pytest.mark.parametrize("how", ["def", "async def"])
def test_r7_lifecycle_handlers_that_throw_cost_a_warning(role, hook_log, how):
    role.write(
        "hooks/probe.py",
        RECORD
        + f"{how} on_load(ctx): raise OSError('no database')\n{how} on_dispose(ctx): raise OSError('gone')\n"
        "def on_chat_message(ctx, input): note('runs')\n",
    )
    role.role(custom(hook()))
    assert role.assemble().problems == []
    role.chat()
    role.engine.close()
    assert role.noted() == ["runs"]
    told = [item for item in hook_log if item["extra"].get("hook") == "hook:custom-registry"]
    assert [
        (item["message"], item["level"].name, item["extra"].get("err"))
        for item in told
        if item["level"].no > 10
    ] == [
        ('Custom hook "probe" onLoad threw', "WARNING", "OSError: no database"),
        ('Custom hook "probe" onDispose threw', "WARNING", "OSError: gone"),
    ]


@pytest.mark.parametrize("code", ["import time; time.sleep(60)", "import asyncio; await asyncio.sleep(60)"])
def test_r7_a_lifecycle_handler_that_hangs_costs_its_time_limit(role, hook_log, monkeypatch, code):
    monkeypatch.setattr(module, "LOAD_SECONDS", 0.05)
    how = "async def" if "await" in code else "def"
    role.write(
        "hooks/probe.py", RECORD + f"{how} on_load(ctx): {code}\ndef on_chat_message(c, i): note('runs')\n"
    )
    role.role(custom(hook()))
    assert role.assemble().problems == []
    role.chat()
    assert role.noted() == ["runs"]
    assert 'Custom hook "probe" onLoad threw' in hook_log.of("custom-registry")


# -- R10: logs ----------------------------------------------------------------------------------------


def test_r10_a_module_that_cannot_be_loaded(role, hook_log):
    role.role(custom(hook(module="hooks/my_hook.py")))
    role.assemble()
    (record,) = [item for item in hook_log if item["extra"].get("hook") == "hook:custom-loader"]
    path = str(role.folder / "hooks" / "my_hook.py")
    assert (record["message"], record["level"].name) == ("Failed to load custom hook module", "WARNING")
    assert record["extra"]["modulePath"] == path
    assert "No such file" in record["extra"]["err"]


def test_r10_a_hook_that_was_registered(role, hook_log):
    role.write("hooks/probe.py", "def on_chat_message(ctx, input): pass\n")
    role.role(custom(hook()))
    role.assemble()
    (record,) = [item for item in hook_log if item["extra"].get("hook") == "hook:custom-registry"]
    assert (record["message"], record["level"].name) == ("Registered custom hook", "DEBUG")
    assert (record["extra"]["name"], record["extra"]["events"]) == ("probe", ["chat.message"])


@pytest.mark.parametrize("how", ["def", "async def"])
def test_r10_a_handler_that_failed_never_stops_the_others(role, hook_log, how):
    role.write("hooks/bad.py", f"{how} on_tool_after(ctx, input): raise ValueError('oops')\n")
    role.write("hooks/probe.py", RECORD + "def on_tool_after(ctx, input): note('next')\n")
    at = "tool.execute.after"
    role.role(custom(hook("my-checker", at, "hooks/bad.py"), hook("next", at)))
    role.assemble()
    out = role.after("write")
    assert [(failure.hook, failure.error_type) for failure in out.failures] == [("my-checker", "ValueError")]
    assert role.noted() == ["next"]
    (record,) = [item for item in hook_log if item["level"].name == "WARNING" and item["extra"].get("err")]
    assert record["message"] == 'Custom hook "my-checker" failed on tool.execute.after'
    assert record["extra"]["hook"] == "hook:custom-registry"
    assert record["extra"]["err"] == "ValueError: oops"


# -- roles: where they lie, whom they concern ---------------------------------------------------------

WHO = "def on_chat_message(ctx, input): note(ctx.config['role'])\n"


def two_roles(role) -> None:
    for name in ("coder", "tester"):
        role.write(f"rolebox/{name}/probe.py", noter(role.log) + WHO)
        hooks = custom(hook(module="probe.py", config=f"{{role: {name}}}"))
        role.role(hooks, f"rolebox/{name}/role.yaml", name=f"The {name}")


@pytest.mark.parametrize(
    ("agent", "ran"), [("coder", ["coder"]), ("tester", ["tester"]), ("The tester", ["tester"]), ("main", [])]
)
def test_a_roles_hooks_fire_for_its_own_agent(role, agent, ran):
    two_roles(role)
    assembled = role.assemble()
    assert assembled.problems == []
    assert rows(assembled)["coder/probe"] == "loaded"
    role.chat(agent=agent)
    assert role.noted() == ran


def test_the_only_role_is_for_all_agents_even_beside_somebody_elses_role_yaml(role):
    role.write("hooks/probe.py", RECORD + "def on_chat_message(ctx, input): note(ctx.agent)\n")
    role.role(custom(hook()))
    role.write("rolebox/k8s/role.yaml", "apiVersion: v1\nkind: Role\n")
    role.assemble()
    role.chat(agent="main")
    role.chat(agent="other")
    assert role.noted() == ["main", "other"]


def test_an_untrusted_role_beside_it_does_not_make_a_role_the_only_one(role):
    two_roles(role)
    role.assemble()
    role.engine.close()
    with (role.folder / "rolebox/tester/role.yaml").open("a") as file:
        file.write("# changed\n")
    role.write("rolebox/tester/probe.py", noter(role.log) + WHO + "# changed\n")
    role.assemble(trust=False)
    role.chat(agent="main")
    assert role.noted() == []


@pytest.mark.parametrize(
    ("variable", "folder"),
    [
        ("", ".config/opencode/rolebox"),
        ("XDG_CONFIG_HOME", "opencode/rolebox"),
        ("", ".pi/agent/rolebox"),
        ("PI_CODING_AGENT_DIR", "rolebox"),
        ("", ".dsh/rolebox"),
        ("DSH_HOME", "rolebox"),
    ],
)
def test_the_users_roles_lie_in_the_platforms_folders_and_need_no_trust(
    role, tmp_path, monkeypatch, variable, folder
):
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    monkeypatch.setenv(variable or "HOME", str(home))
    at = home / folder / "mine"
    at.mkdir(parents=True)
    role.write(str(at / "probe.py"), noter(role.log) + "def on_chat_message(c, i): note('ran')\n")
    role.role(custom(hook(module="probe.py")), str(at / "role.yaml"))
    role.assemble(trust=False)
    role.chat()
    assert role.noted() == ["ran"]


def test_a_role_of_the_project_comes_before_the_users_of_that_name(role, tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for folder in (str(home / ".config/opencode/rolebox/coder"), "rolebox/coder"):
        text = noter(role.log) + f"def on_chat_message(c, i): note({folder[-13:]!r})\n"
        role.write(f"{folder}/probe.py", text)
        role.role(custom(hook(module="probe.py")), f"{folder}/role.yaml")
    os.chmod(home, 0o755)
    assembled = role.assemble()
    role.chat()
    assert role.noted() == ["rolebox/coder"]
    reasons = [row.reason for row in assembled.plugins if row.state == "disabled" and row.kind == "config"]
    assert reasons == ["rolebox/coder/role.yaml declares the role coder, too"] * 3


def test_a_role_whose_folder_has_two_hyphens_is_skipped(role):
    role.role(custom(hook()), "rolebox/a--b/role.yaml")
    assert causes(role.assemble()) == ["the role 'a--b' is skipped: '--' separates a role from its sub-agent"]


# -- trust --------------------------------------------------------------------------------------------


def test_an_untrusted_role_runs_nothing(role):
    role.write("hooks/probe.py", RECORD + "note('imported')\ndef on_chat_message(ctx, input): note('ran')\n")
    role.role(custom(hook()))
    assembled = role.assemble(trust=False)
    role.chat()
    assert set(rows(assembled).values()) == {"untrusted"}
    assert role.noted() == []


def test_a_changed_module_is_not_run(role):
    role.write("hooks/probe.py", "def on_chat_message(ctx, input): pass\n")
    role.role(custom(hook()))
    role.assemble()
    role.engine.close()
    role.write("hooks/probe.py", RECORD + "note('imported')\ndef on_chat_message(ctx, input): pass\n")
    assembled = role.assemble(trust=False)
    assert rows(assembled)["probe"] == "untrusted"
    assert role.noted() == []


# -- R11: upstream's own tests ------------------------------------------------------------------------


def test_r11_a_before_hook_gets_tool_arguments_and_session_and_the_tool_runs(role):
    role.write(
        "hooks/probe.py",
        RECORD + "def onToolBefore(ctx, input): note(input['tool'], input['args'], ctx.sessionID)\n",
    )
    role.role(custom(hook(events="tool.execute.before", phase="before")))
    role.assemble()
    with role.engine.session(session_id="s1") as session, session.turn() as turn:
        result = turn.call_tool("read", {"filePath": "a"}, execute=lambda filePath: filePath)
    assert (result.status, result.value) == ("ok", "a")
    assert role.noted() == ["read {'filePath': 'a'} s1"]


@pytest.mark.parametrize("more", [{"attachments": [{"type": "file"}]}, {}])
def test_r11_a_message_without_text_is_still_a_message(role, more):
    role.write("hooks/probe.py", RECORD + "def on_chat_message(ctx, input): note('message', input.text)\n")
    role.role(custom(hook()))
    role.assemble()
    assert role.chat("", **more).failures == ()
    assert role.noted() == ["message "]


@pytest.mark.parametrize("path", ["role.yaml", "rolebox/x/role.yaml"])
def test_recognises_is_what_read_takes(role, path):
    role.role(custom(hook()), path)
    assert roles.recognises((role.folder / path).read_bytes())


def test_a_role_in_flow_style_is_one():
    assert roles.recognises(b"name: x\nhooks: {custom: [{name: y}]}\n")
    assert not roles.recognises(b"name: x\nhooks: {pre: custom}\n")


def test_an_installed_role_that_two_platforms_link_to_runs_once(role, tmp_path, monkeypatch):
    home = tmp_path / "home"
    data = home / ".local/share/rolebox/roles/main/coder@1.0.0"
    monkeypatch.setenv("HOME", str(home))
    role.write(str(data / "probe.py"), noter(role.log) + "def on_chat_message(c, i): note('ran')\n")
    role.role(custom(hook(module="probe.py")), str(data / "role.yaml"))
    for folder in (".config/opencode/rolebox", ".pi/agent/rolebox"):
        (home / folder).mkdir(parents=True)
        (home / folder / "coder").symlink_to(data)
    for path in (home, *home.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)
    role.assemble(trust=False)
    role.chat(agent="any")
    assert role.noted() == ["ran"]


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_bytes(b"name: x\nprompt: y\n" + b"# long\n" * 1_500_000),
        lambda path: path.symlink_to(path.parent / "nowhere"),
        lambda path: path.symlink_to(path),
        lambda path: path.mkdir(),
        lambda path: os.mkfifo(path),
        lambda path: path.write_bytes(b"name: x\nprompt: y\nhooks: &a\n  custom: [*a]\n"),
        lambda path: path.write_bytes(b"name: x\nprompt: y\nhooks: {custom: [" + b"[" * 5000),
        lambda path: path.write_bytes(b"name: x\nprompt: y\nhooks: !!python/object:os.system {}\n"),
        lambda path: path.write_bytes(b"name: \xff\xfe\nprompt: y\n"),
        lambda path: path.write_bytes(b"name: x\nprompt: y\nhooks:\n  custom:\n    - {name: 3, events: 4, module: 5}\n    - null\n"),
    ],
)  # fmt: skip
def test_a_hostile_role_costs_only_itself(role, make):
    role.write("rolebox/good/probe.py", noter(role.log) + "def on_chat_message(c, i): note('good')\n")
    role.role(custom(hook(module="probe.py")), "rolebox/good/role.yaml")
    bad = role.folder / "rolebox/bad/role.yaml"
    bad.parent.mkdir()
    make(bad)
    role.assemble()
    role.chat(agent="good")
    assert role.noted() == ["good"]


def test_a_linked_folder_of_a_project_is_no_role(role, tmp_path):
    outside = tmp_path / "outside"
    role.write(str(outside / "probe.py"), "def on_chat_message(c, i): pass\n")
    role.role(custom(hook(module="probe.py")), str(outside / "role.yaml"))
    (role.folder / "rolebox").mkdir()
    (role.folder / "rolebox/linked").symlink_to(outside)
    assembled = role.assemble()
    assert [row.name for row in assembled.plugins if row.name.startswith("linked")] == []
