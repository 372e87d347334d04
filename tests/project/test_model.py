"""A bad entry costs only itself, and its problem says file:line:column, path, cause, the likely right word, remedy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn.project.model import read_hooks, read_model
from hookturn.project.toml_document import read_toml
from hookturn.project.yaml_document import read_yaml
from hookturn.spec.timings import TIMINGS


def read(text, timings=TIMINGS):
    model = read_model(read_yaml(text.encode(), "hookturn.yaml"), "project", "/p")
    read_hooks(model, timings)
    return model


def said(model):
    return [str(problem) for problem in model.problems]


GOOD = """\
mode: enforce
autoload: false
max_continue: 0
dialects: [atomcode]
hooks:
  - name: no-force-push
    timings: [pre_tool_execution]
    run: {module: hooks/no_force_push.py}
    filter: {tools: [bash, "mcp__git__*"], agents: ["*"], event_types: []}
    phase: before
    priority: -10
    timeout: 0.5
    guard: true
    on_failure: deny
    mode: monitor
    config: {branch: main, token: {env: TOKEN}}
  - name: answer
    timings: on_tool_call_start
    run: {answer: {deny: No., advice: Ask., code: c1, warn: w}}
    filter: {tools: read}
  - {name: off, enabled: false}
  - {name: whole module, run: {module: x.py}}
plugins:
  audit-log: {path: .hookturn/audit.jsonl, mode: monitor}
  turn-stats: true
  slack: false
  session-summary:
  Org.Guard: {required: true, version: ">=2,<3"}
permissions: {always_allow: [read], ask: write, deny: ["bash(rm -rf *)"]}
"""


def test_a_good_file():
    model = read(GOOD)
    assert said(model) == []
    assert model.settings == {
        "mode": "enforce",
        "autoload": False,
        "max_continue": 0,
        "dialects": ["atomcode"],
    }
    push, answer, off, whole = model.hooks
    assert (push.name, push.kind, push.run, push.timings) == (
        "no-force-push",
        "module",
        "hooks/no_force_push.py",
        ["pre_tool_execution"],
    )
    assert push.options == {
        "phase": "before",
        "priority": -10,
        "timeout": 0.5,
        "guard": True,
        "on_failure": "deny",
        "mode": "monitor",
        "tools": ["bash", "mcp__git__*"],
        "agents": ["*"],
    }
    assert push.config == {"branch": "main", "token": {"env": "TOKEN"}}
    assert (push.source, push.path, push.guard, push.fails_closed) == (
        "hookturn.yaml:6",
        "/p/hooks/no_force_push.py",
        True,
        True,
    )
    assert (answer.timings, answer.options, answer.guard) == (
        ["on_tool_call_start"],
        {"tools": ["read"]},
        False,
    )
    assert (off.enabled, off.kind) == (False, "")
    assert whole.timings == []
    assert {name: entry.enabled for name, entry in model.plugins.items()} == {
        "audit-log": True,
        "turn-stats": True,
        "slack": False,
        "session-summary": True,
        "org-guard": True,
    }
    audit, guard = model.plugins["audit-log"], model.plugins["org-guard"]
    assert (audit.settings, audit.mode, audit.source) == (
        {"path": ".hookturn/audit.jsonl"},
        "monitor",
        "hookturn.yaml:24",
    )
    assert (guard.name, guard.required, guard.version, guard.settings) == ("Org.Guard", True, ">=2,<3", {})
    assert {kind: [rule.text for rule in rules] for kind, rules in model.rules.items()} == {
        "always_allow": ["read"],
        "ask": ["write"],
        "deny": ["bash(rm -rf *)"],
    }
    assert model.rules["deny"][0].source == "hookturn.yaml:29"


H = "hooks:\n  - name: h\n    "
RUN = "run: {answer: {deny: x}}\n"
T = "timings: [pre_tool_execution]\n    "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hook: []\n", "hookturn.yaml:1:1: hook: unknown key 'hook' (did you mean 'hooks'?). Correct it."),
        (
            "timings: []\n",
            "hookturn.yaml:1:1: timings: unknown key 'timings'. "
            "A hook's keys belong into an entry below 'hooks:'.",
        ),
        ("mode: strict\n", "hookturn.yaml:1:7: mode: expected enforce or monitor, got 'strict'. Write enforce, say."),
        ("mode: monitr\n", "hookturn.yaml:1:7: mode: expected enforce or monitor, got 'monitr' (did you mean 'monitor'?)"),
        ("autoload: no\n", "hookturn.yaml:1:11: autoload: expected true or false, got the text 'no'. Write false."),
        ("autoload: 1\n", "hookturn.yaml:1:11: autoload: expected true or false, got 1. Write true or false."),
        ("max_continue: -1\n", "hookturn.yaml:1:15: max_continue: expected a whole number from 0, got -1. Write 0 or more."),
        ("max_continue: '8'\n", "hookturn.yaml:1:15: max_continue: expected a whole number from 0, got '8'. Write it without quotes."),
        ("max_continue: true\n", "hookturn.yaml:1:15: max_continue: expected a whole number from 0, got True."),
        ("hooks: {a: b}\n", "hookturn.yaml:1:8: hooks: expected a list, got a mapping. Begin each hook with '- name"),
        ("hooks: [x]\n", "hookturn.yaml:1:9: hooks[0]: a hook is a mapping, got a text."),
        (f"hooks:\n  - {T}{RUN}", "hookturn.yaml:2:5: hooks[0]: the hook has no name. Add 'name:' with a short word."),
        (f"hooks:\n  - name: ''\n    {T}{RUN}", "hookturn.yaml:2:11: hooks[0].name: the name is empty."),
        (f"hooks:\n  - name: 7\n    {T}{RUN}", "hookturn.yaml:2:11: hooks[0].name: a name must be a text, got a number."),
        (f'hooks:\n  - name: "a\\nb"\n    {T}{RUN}', "hookturn.yaml:2:11: hooks[0].name: the name 'a\\nb' holds characters"),
        (f"{H}timing: x\n    {T}{RUN}", "hookturn.yaml:3:5: hooks[0].timing: unknown key 'timing' (did you mean 'timings'?)."),
        (f"{H}tools: [bash]\n    {T}{RUN}", "hookturn.yaml:3:5: hooks[0].tools: unknown key 'tools'. Move it below 'filter:'."),
        (f"{H}{RUN}", "hookturn.yaml:2:5: hooks[0]: the hook has no timings. Add 'timings: [pre_tool_execution]', say."),
        (f"{H}timings: []\n    {RUN}", "hookturn.yaml:3:14: hooks[0].timings: the list of timings is empty."),
        (
            f"{H}timings: pre_tool\n    {RUN}",
            "hookturn.yaml:3:14: hooks[0].timings: unknown timing 'pre_tool' (did you mean 'pre_tool_execution'?). ",
        ),
        (
            f"{H}timings: [on_error, on_eror]\n    run: {{answer: {{warn: x}}}}\n",
            "hookturn.yaml:3:25: hooks[0].timings[1]: unknown timing 'on_eror' (did you mean 'on_error'?). ",
        ),
        (f"{H}timings: [1]\n    {RUN}", "hookturn.yaml:3:15: hooks[0].timings[0]: expected a text, got a number."),
        (f"{H}timings: [on_error, on_error]\n    run: {{answer: {{warn: x}}}}\n", "hookturn.yaml:3:25: hooks[0].timings[1]: on_error is named twice."),
        (f"{H}{T}run: x\n", "hookturn.yaml:4:10: hooks[0].run: expected a mapping, got 'x'."),
        (f"{H}{T}priority: 1\n", "hookturn.yaml:2:5: hooks[0]: the hook has no 'run:'."),
        (f"{H}{T}run: {{}}\n", "hookturn.yaml:4:10: hooks[0].run: 'run:' takes exactly one of module, answer, command, webhook, javascript; got none."),
        (
            f"{H}{T}run: {{module: x.py, answer: {{deny: x}}}}\n",
            "hookturn.yaml:4:10: hooks[0].run: 'run:' takes exactly one of module, answer, command, webhook, javascript; got module and answer.",
        ),
        (f"{H}{T}run: {{modul: x.py}}\n", "hookturn.yaml:4:11: hooks[0].run.modul: unknown key 'modul' (did you mean 'module'?)."),
        (f"{H}{T}run: {{module: [x.py]}}\n", "hookturn.yaml:4:19: hooks[0].run.module: expected the path of a Python file, got a list."),
        (f"{H}{T}run: {{command: }}\n", "hookturn.yaml:4:19: hooks[0].run.command: expected a list of words or a shell line, got nothing."),
        (f"{H}{T}run: {{command: []}}\n", "hookturn.yaml:4:20: hooks[0].run.command: expected a list of words or a shell line, got a list."),
        (f"{H}{T}run: {{command: ' '}}\n", "hookturn.yaml:4:20: hooks[0].run.command: the shell line is empty or holds a NUL."),
        (f"{H}{T}run: {{command: [sleep, 3]}}\n", "hookturn.yaml:4:28: hooks[0].run.command[1]: expected a text, got 3."),
        (f"{H}{T}run: {{command: ['']}}\n", "hookturn.yaml:4:21: hooks[0].run.command[0]: the word is empty or holds a NUL."),
        (f'{H}{T}run: {{command: [x, "a\\0b"]}}\n', "hookturn.yaml:4:24: hooks[0].run.command[1]: the word is empty or holds a NUL."),
        (f"{H}run: {{command: x}}\n", "hookturn.yaml:2:5: hooks[0]: the hook has no timings."),
        (
            f"{H}{T}run: {{webhook: {{url: x}}}}\n",
            "hookturn.yaml:4:26: hooks[0].run.webhook.url: a webhook's URL begins with https:// or http://. "
            "Write https://example.com/hook, say.",
        ),
        (f"{H}{T}run: {{javascript: [x.js]}}\n", "hookturn.yaml:4:23: hooks[0].run.javascript: expected the path of a JavaScript file, got a list. Write hooks/x.js, say."),
        (f"{H}{T}run: {{answer: {{denny: x}}}}\n", "hookturn.yaml:4:19: hooks[0].run.answer: unknown key 'denny' in the answer (did you mean 'deny'?)."),
        (f"{H}{T}run: {{answer: no}}\n", "hookturn.yaml:4:19: hooks[0].run.answer: an answer is one JSON object, got a string."),
        (f"{H}{T}run: {{answer: {{}}}}\n", "hookturn.yaml:4:19: hooks[0].run.answer: the answer says nothing."),
        (f"{H}{T}run: {{answer: {{deny: ''}}}}\n", "hookturn.yaml:4:19: hooks[0].run.answer: Deny needs a reason with words in it"),
        (f"{H}{T}run: {{answer: {{deny: x, ask: y}}}}\n", "hookturn.yaml:4:19: hooks[0].run.answer: an answer holds at most one of"),
        (
            f"{H}{T}run: {{answer: {{continue: x}}}}\n",
            "hookturn.yaml:4:19: hooks[0].run.answer: continue is no answer of pre_tool_execution, which takes rewrite, deny",
        ),
        (
            f"{H}timings: [system_prompt]\n    run: {{answer: {{deny: x}}}}\n",
            "hookturn.yaml:4:19: hooks[0].run.answer: deny is no answer of system_prompt, which takes inject, rewrite, warn. "
            "Give one of these, or name another timing.",
        ),
        (
            f"{H}{T}run:\n      answer:\n      deny: x\n",
            "hookturn.yaml:6:7: hooks[0].run.deny: unknown key 'deny'. Indent it below 'answer:', and that below 'run:'.",
        ),
        (
            f"{H}{T}run:\n    answer:\n      deny: x\n",
            "hookturn.yaml:5:5: hooks[0].answer: unknown key 'answer'. Indent it below 'run:'.",
        ),
        (f"{H}{T}run: {{answer: {{deny: x, block: y}}}}\n", "hookturn.yaml:4:19: hooks[0].run.answer: an answer holds at most one of allow, ask, deny and block. Keep one of them."),
        (f"{H}timings: ['']\n    {RUN}", "hookturn.yaml:3:15: hooks[0].timings[0]: expected a text, got an empty one. Write a name, or take it out."),
        (
            f"{H}{T}guard: true\n    run: {{answer: {{allow: x}}}}\n",
            "hookturn.yaml:5:19: hooks[0].run.answer: allow is no answer of a guard, which takes deny, ask, block, warn. "
            "Give one of these, or drop 'guard: true'.",
        ),
        (
            f"{H}timings: [on_session_end]\n    guard: true\n    run: {{answer: {{warn: x}}}}\n",
            "hookturn.yaml:3:15: hooks[0].timings[0]: a guard can stop nothing at on_session_end.",
        ),
        (f"{H}{T}{RUN}    guard: yes\n", "hookturn.yaml:5:12: hooks[0].guard: expected true or false, got the text 'yes'. Write true."),
        (f"{H}{T}{RUN}    enabled: off\n", "hookturn.yaml:5:14: hooks[0].enabled: expected true or false, got the text 'off'."),
        (f"{H}{T}{RUN}    priority: high\n", "hookturn.yaml:5:15: hooks[0].priority: expected a whole number, got 'high'. Write a whole number, such as 10."),
        (f"{H}{T}{RUN}    priority: 1.5\n", "hookturn.yaml:5:15: hooks[0].priority: expected a whole number, got 1.5."),
        (f"{H}{T}{RUN}    timeout: 0\n", "hookturn.yaml:5:14: hooks[0].timeout: expected seconds above 0, got 0."),
        (f"{H}{T}{RUN}    timeout: 5s\n", "hookturn.yaml:5:14: hooks[0].timeout: expected seconds above 0, got '5s'."),
        (f"{H}{T}{RUN}    timeout: .nan\n", "hookturn.yaml:5:14: hooks[0].timeout: expected seconds above 0, got nan."),
        (f"{H}{T}{RUN}    phase: first\n", "hookturn.yaml:5:12: hooks[0].phase: expected before or after, got 'first'."),
        (f"{H}{T}{RUN}    on_failure: block\n", "hookturn.yaml:5:17: hooks[0].on_failure: expected ignore or deny, got 'block'."),
        (f"{H}{T}{RUN}    config: x\n", "hookturn.yaml:5:13: hooks[0].config: expected a mapping, got 'x'."),
        (f"{H}{T}{RUN}    filter: bash\n", "hookturn.yaml:5:13: hooks[0].filter: expected a mapping, got 'bash'."),
        (f"{H}{T}{RUN}    filter: {{tool: bash}}\n", "hookturn.yaml:5:14: hooks[0].filter.tool: unknown key 'tool' (did you mean 'tools'?)."),
        (f"{H}{T}{RUN}    filter: {{agents: 3}}\n", "hookturn.yaml:5:22: hooks[0].filter.agents: expected a list of texts, got 3."),
        (
            f"{H}{T}{RUN}    filter: {{tools: ['bash(rm *)']}}\n",
            "hookturn.yaml:5:22: hooks[0].filter.tools[0]: 'bash(rm *)' is a permission rule;",
        ),
        (
            "hooks:\n  - &x {name: h, timings: on_error, run: {answer: {warn: x}}}\n  - *x\n",
            "hookturn.yaml:2:15: hooks[1].name: a hook named 'h' stands in line 2 already.",
        ),
        ("plugins: [a]\n", "hookturn.yaml:1:10: plugins: expected a mapping of names, got a list."),
        ("plugins: {a: 3}\n", "hookturn.yaml:1:14: plugins.a: expected true, false or settings, got 3."),
        ("plugins: {a-b: true, A_b: {}}\n", "hookturn.yaml:1:22: plugins.A_b: 'A_b' is the same plugin as 'a-b' in line 1."),
        ("plugins: {a: {version: 2}}\n", "hookturn.yaml:1:24: plugins.a.version: expected versions such as '>=2', got a number."),
        ("plugins: {a: {version: '2'}}\n", "hookturn.yaml:1:24: plugins.a.version: '2' is no comparison of versions."),
        ("plugins: {a: {version: '>=two'}}\n", "hookturn.yaml:1:24: plugins.a.version: 'two' is no version."),
        ("plugins: {a: {required: 1}}\n", "hookturn.yaml:1:25: plugins.a.required: expected true or false, got 1."),
        ("plugins: {a: {required: true, enabled: false}}\n", "hookturn.yaml:1:14: plugins.a: a required plugin cannot be switched off."),
        ("permissions: [a]\n", "hookturn.yaml:1:14: permissions: expected a mapping, got a list."),
        ("permissions: {allow: []}\n", "hookturn.yaml:1:15: permissions.allow: unknown key 'allow'. Known are always_allow, ask, deny."),
        ("permissions: {deny: {a: b}}\n", "hookturn.yaml:1:21: permissions.deny: expected a list of rules, got a mapping."),
        ("permissions: {deny: [x, 3]}\n", "hookturn.yaml:1:25: permissions.deny[1]: a rule must be a text, got a number."),
        ("permissions: {deny: ['bash(']}\n", "hookturn.yaml:1:22: permissions.deny[0]: permission rule 'bash(' has an unclosed"),
    ],
)  # fmt: skip
def test_what_can_be_wrong(text, expected):
    good = "  - {name: good, timings: [on_error], run: {answer: {warn: fine}}}\n"
    in_hooks = text.startswith("hooks:\n")
    model = read(text + good if in_hooks else text)
    assert [line for line in said(model) if not line.startswith(expected)] == []
    assert len(model.problems) == 1
    assert model.problems[0].severity == "error"
    if in_hooks:
        assert model.hooks[-1].name == "good"
        assert [entry.name for entry in model.hooks[:-1]] in ([], ["h"])
        assert len(model.hooks) == (2 if "&x" in text else 1)


def test_everything_that_is_wrong_with_an_entry_is_said():
    model = read(
        f"{H}timing: x\n    timings: [nope]\n    guard: 1\n    run: {{webhook: x}}\n    priority: x\n"
    )
    assert len(model.problems) == 5
    assert model.hooks == []


def test_a_bad_rule_or_plugin_costs_only_itself():
    model = read("permissions: {deny: ['x(', y], ask: 3}\nplugins: {a: 3, b: true}\n")
    assert [rule.text for rule in model.rules["deny"]] == ["y"]
    assert list(model.plugins) == ["b"]


def test_both_entries_of_a_double_name_are_told_and_the_first_stands():
    model = read(
        """\
hooks:
  - {name: a, timings: on_error, run: {answer: {warn: one}}}
  - {name: b, timings: on_error, run: {answer: {warn: two}}}
  - {name: a, timings: on_error, run: {answer: {warn: three}}}
"""
    )
    assert said(model) == [
        "hookturn.yaml:4:12: hooks[2].name: a hook named 'a' stands in line 2 already. "
        "Give one of them another name; this one is ignored."
    ]
    assert [entry.run for entry in model.hooks] == [{"warn": "one"}, {"warn": "two"}]


def test_a_frameworks_own_timing_may_be_named():
    from hookturn import Deny, events, hookspec
    from hookturn.spec.timings import Timing

    class Planned(events.Event, timing="on_planned"):
        steps: list[str]

    @hookspec(event=Planned, answers=(Deny,))
    def on_planned(event, ctx):
        """A plan."""

    text = f"{H}timings: [on_planned]\n    {RUN}"
    assert len(read(text).problems) == 1
    model = read(text, {**TIMINGS, "on_planned": Timing(on_planned)})
    assert said(model) == []
    assert model.hooks[0].timings == ["on_planned"]


def test_problems_of_pyproject_name_the_whole_path():
    text = b"[project]\nname = 'x'\n\n[[tool.hookturn.hooks]]\nname = 'h'\ntimings = ['pre_tool']\nrun.answer.deny = 'x'\n"
    model = read_model(read_toml(text, "pyproject.toml"), "project", "/p")
    read_hooks(model)
    assert said(model) == [
        "pyproject.toml:6:12: tool.hookturn.hooks[0].timings[0]: unknown timing 'pre_tool' "
        "(did you mean 'pre_tool_execution'?). Use a timing's name, such as pre_tool_execution."
    ]


def test_a_problem_as_json():
    (problem,) = read("mode: 3\n").problems
    assert problem.to_json() == {
        "file": "hookturn.yaml",
        "line": 1,
        "column": 7,
        "path": "mode",
        "cause": "expected enforce or monitor, got 3",
        "remedy": "Write enforce, say.",
        "severity": "error",
    }


keys = st.sampled_from(
    ["hooks", "plugins", "permissions", "mode", "name", "timings", "run", "answer", "module", "deny", "filter", "tools",
     "guard", "priority", "config", "enabled", "required", "version", "x", "always_allow", "\ud800", ""]
)  # fmt: skip
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["pre_tool_execution", "x", "\ud800", "a\0b", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=25,
)


@given(st.dictionaries(keys, anything, max_size=4))
def test_no_data_at_all_makes_it_stumble(data):
    import json

    document = read_yaml(b"", "f")
    document.data = data
    model = read_model(document, "project", "/p")
    read_hooks(model)
    for problem in model.problems:
        assert str(problem).isascii() or str(problem).isprintable()
    json.dumps([problem.to_json() for problem in model.problems])


def test_a_problem_is_one_printable_line_whatever_it_is_about():
    model = read('plugins: {"a\\nb": 3, "\\ud800": 3}\nmode: "\\ud800\\n"\n')
    assert len(model.problems) == 3
    for problem in model.problems:
        assert str(problem).isprintable()
        str(problem).encode()


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("Bash(rm *)", "'Bash' is only a tool of exactly this name (did you mean 'bash'?)"),
        ("READ", "'READ' is only a tool of exactly this name (did you mean 'read'?)"),
        ("bsh(rm *)", "'bsh' is no kind of tool (did you mean 'bash'?)"),
        ("raed", "'raed' is no kind of tool (did you mean 'read'?)"),
        ("wrote(/etc/*)", "'wrote' is no kind of tool (did you mean 'write'?)"),
        ("reads", "'reads' is no kind of tool (did you mean 'read'?)"),
        ("bash rm", "the tool 'bash rm' has a blank in its name (did you mean 'bash(rm *)'?)"),
        ("bash:rm", "the tool 'bash:rm' has a colon in its name (did you mean 'bash(rm *)'?)"),
        (
            "bash(npm run:*)",
            "'npm run:*' is matched as text, colon and all (did you mean 'bash(npm run *)'?)",
        ),
        ("read:/etc/x", "the tool 'read:/etc/x' has a colon in its name (did you mean 'read(/etc/x)'?)"),
    ],
)
def test_a_rule_that_probably_matches_nothing(rule, expected):
    model = read(f'permissions: {{deny: [read, "{rule}"]}}')
    (problem,) = model.problems
    assert (problem.cause, problem.severity, problem.path) == (expected, "warning", "permissions.deny[1]")
    assert [known.text for known in model.rules["deny"]] == ["read", rule]


def test_a_filter_that_probably_matches_nothing():
    model = read(
        "hooks:\n  - name: a\n    timings: [pre_tool_execution]\n    run: {answer: {deny: x}}\n"
        "    filter: {tools: [bash, Bash, bsh, 'bash rm']}\n"
    )
    assert [(p.path, p.severity) for p in model.problems] == [
        (f"hooks[0].filter.tools[{index}]", "warning") for index in (1, 2, 3)
    ]
    assert len(model.hooks) == 1


def test_names_of_tools_are_no_misspelt_kinds():
    names = [
        "shell",
        "sh",
        "cat",
        "task",
        "webfetch",
        "mcp__git__*",
        "*",
        "rea?",
        "run_shell_command",
        "Grep",
    ]
    assert said(read(f"permissions: {{deny: {names}}}")) == []


@pytest.mark.parametrize(
    "rules",
    [
        "bash(x[1])",
        "bash(a, b)",
        "bash(git: x)",
        "*",
        "read, *",
        "@x",
        "bash(x #y)",
        "*(rm)",
        "`x`",
        "bash(a{b})",
    ],
)
def test_a_rule_without_quotes_is_told_to_have_some(rules):
    model = read(f"permissions:\n  deny: [{rules}]\n")
    assert all('"quotes"' in problem.remedy for problem in model.problems), said(model)
    assert model.problems
