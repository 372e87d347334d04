"""``run: {command: ...}`` in hookturn.yaml: reading, trust, setting up, and what becomes of changed files."""

from __future__ import annotations

import sys

import pytest

from hookturn import events

DENY = """\
import json, sys
event = json.load(sys.stdin)["event"]
if "--force" in event["command"]:
    print(json.dumps({"deny": "no force"}))
"""


def guard(run, more=""):
    return f"""
hooks:
  - name: no-force
    timings: [pre_tool_execution]
    run: {{command: {run}}}
    {more}
"""


@pytest.fixture
def scripted(project):
    project.write("hooks/no_force.py", DENY)
    project.config(guard("[python3, hooks/no_force.py]"))
    return project


def row(assembled, name="no-force"):
    return next(item for item in assembled.plugins if item.name == name)


def only_problem(assembled):
    (problem,) = assembled.problems
    return str(problem)


def test_it_runs_once_trusted(scripted):
    assembled = scripted.assemble()
    assert row(assembled).state == "untrusted"
    assert scripted.fire(assembled=assembled, command="git push --force").decision is None
    scripted.trust()
    assembled = scripted.assemble()
    assert (row(assembled).state, row(assembled).hooks) == ("loaded", ["pre_tool_execution"])
    assert assembled.problems == []
    out = scripted.fire(assembled=assembled, command="git push --force")
    assert (out.decision, out.reason, out.by) == ("deny", "no force", "no-force")
    assert scripted.fire(assembled=assembled, command="ls").decision is None


def test_an_untrusted_command_is_never_run(project):
    project.config(guard("touch ran"))
    project.fire(command="ls")
    assert not (project.folder / "ran").exists()


def test_a_shell_line_and_a_users_command(project):
    project.user(guard("echo user >&2; exit 2"))
    assert project.fire(command="ls").reason == "user"


def test_a_users_script_beside_its_own_file(project):
    path = project.user(guard("[python3, mine.py]"))
    (path.parent / "mine.py").write_text(DENY)
    assert project.fire(command="git push --force").reason == "no force"


def test_the_script_in_the_hidden_folder(project):
    project.write(".hookturn/hooks/x.py", DENY)
    project.write(".hookturn/hookturn.yaml", guard("[python3, hooks/x.py]"))
    project.trust()
    assert project.fire(command="git push --force").reason == "no force"


def test_what_would_run_is_shown(scripted):
    (waiting,) = scripted.survey().pending()
    assert waiting.declaration.what == "runs python3 hooks/no_force.py at pre_tool_execution"
    (file,) = waiting.declaration.files
    assert file == str(scripted.folder / "hooks/no_force.py")


@pytest.mark.parametrize(
    ("run", "files"),
    [
        ("[python3, -I, hooks/no_force.py]", ["hooks/no_force.py"]),
        ("[hooks/own.sh, --fast]", ["hooks/own.sh"]),
        ("[bash, hooks/own.sh, rules.json, --x=rules.json, other]", ["hooks/own.sh", "rules.json"]),
        ("[python3, hooks/later.py]", ["hooks/later.py"]),
        ("[python3, -m, no_force]", []),
        ("[/bin/sh, -c, 'cat rules.json']", ["rules.json"]),
        ("sh -c 'sh hooks/own.sh --fast'", ["hooks/own.sh"]),
        ("cd hooks && ./own.sh", ["hooks/own.sh"]),
        ("sh -c 'cd hooks; sh own.sh'", ["hooks/own.sh"]),
        ("D=hooks; sh $D/own.sh", ["hooks/own.sh"]),
        ("$(git rev-parse --show-toplevel)/hooks/own.sh", ["hooks/own.sh"]),
        ("'$(git rev-parse --show-toplevel)/hooks/own.sh --fast'", ["hooks/own.sh"]),
        ("`pwd`/hooks/own.sh", ["hooks/own.sh"]),
        ("$PWD/hooks/own.sh", ["hooks/own.sh"]),
        ("for x in hooks/*.sh; do sh $x; done", ["hooks/own.sh"]),
        ("sh /*/*/*/*/*/*/*/*/*.sh", []),
        ("sh */own.sh", ["hooks/own.sh"]),
        ("bash -c 'sh hooks/o{wn,ther}.sh'", ["hooks/own.sh"]),
        ("bash h{oo,a}ks/own.s{h,}", ["hooks/own.sh"]),
        ("bash checks/{__init__,{one,two}}.py", ["checks/__init__.py", "checks/one.py"]),
        ("bash guar{d..e}.py", ["guard.py"]),
        ("python3 --rcfile=guard.py", ["guard.py"]),
        ("awk -fhooks/own.sh", ["hooks/own.sh"]),
        ("[python3, --rcfile=hooks/own.sh, -fguard.py]", ["hooks/own.sh", "guard.py"]),
        ("python3 -mchecks.one", ["checks/__init__.py", "checks/one.py"]),
        ("python3 -Im checks.one", ["checks/__init__.py", "checks/one.py"]),
        ("python3 ./app", ["app/__main__.py"]),
        ("cd sub && make", ["Makefile", "sub/Makefile"]),
        ("make -C sub", ["Makefile", "sub/Makefile"]),
        ("[make, -Csub]", ["Makefile", "sub/Makefile"]),
        ("npm --prefix=sub run x", ["package.json", "sub/package.json"]),
        ("cd -P -- hooks && sh own.sh", ["hooks/own.sh"]),
        ("cd checks && cd ../hooks && sh own.sh", ["hooks/own.sh"]),
        ("H=.; cd $H/hooks; ./own.sh", ["hooks/own.sh"]),
        ("PATH=hooks:$PATH own.sh", ["hooks/own.sh"]),
        ("H=hooks; sh -c 'sh $H/own.sh'", ["hooks/own.sh"]),
        ("cd hooks; sh -c './own.sh --fast'", ["hooks/own.sh"]),
        ("sh ${H:-hooks}/own.sh", ["hooks/own.sh"]),
        ("sh ${H:=hooks/own.sh}", ["hooks/own.sh"]),
        ("eval '`cat hooks/own.sh`'", ["hooks/own.sh"]),
        ("sh hooks/[^a]wn.sh", ["hooks/own.sh"]),
        ("sh hooks/[[:alpha:]]wn.sh", ["hooks/own.sh"]),
        (r"# don't\n(cd hooks;sh own.sh);", ["hooks/own.sh"]),
        (r"sh hoo\\\nks/own.sh", ["hooks/own.sh"]),
        ("bash $'hooks/own.sh'", ["hooks/own.sh"]),
        ("X=hooks/own.sh; sh $X", ["hooks/own.sh"]),
        ("X=own D=hooks; sh ${D}/$X.sh", ["hooks/own.sh"]),
        ("X=hooks/own; Y=$X; sh $Y.sh", ["hooks/own.sh"]),
        ("for x in own other; do sh hooks/$x.sh; done", ["hooks/own.sh"]),
        ("BASH_ENV=guard.py bash -c true", ["guard.py"]),
        ("date >> rules.json", []),
        ("date --output=rules.json --log rules.json", []),
        ("[python3, -I, hooks/own.sh, --report=rules.json]", ["hooks/own.sh"]),
        ("npm run -s hook", ["package.json"]),
        ("[make, -s, hook]", ["Makefile"]),
        ("[python3, -m, guard]", ["guard.py"]),
        ("python3 -m checks.one", ["checks/__init__.py", "checks/one.py"]),
        ("python3 -m checks", ["checks/__init__.py"]),
        ("hooks/own.sh | python3 'hooks/no_force.py';cat < rules.json", ["hooks/own.sh", "hooks/no_force.py", "rules.json"]),
        ("'it is an \"open quote in rules.json'", ["rules.json"]),
    ],
)  # fmt: skip
def test_which_files_trust_covers(scripted, run, files):
    others = ("package.json", "Makefile", "guard.py", "checks/__init__.py", "checks/one.py")
    others += ("sub/package.json", "sub/Makefile", "app/__main__.py")
    for name in ("rules.json", "hooks/own.sh", "x=rules.json", *others):
        scripted.write(name, "x")
    scripted.config(guard(run if run[0] in "['" and run[-1] in "]'" else f'"{run}"'))
    (declaration,) = scripted.survey().declarations
    assert list(declaration.files) == [str(scripted.folder / name) for name in files]


def test_a_pattern_that_means_too_many_files_is_never_run(scripted, monkeypatch):
    monkeypatch.setattr("hookturn.runners.command._MOST_MATCHES", 5)
    for number in range(6):
        scripted.write(f"many/{number}.sh", "touch ran")
    scripted.config(guard("cat many/*.sh | sh", "guard: true"))
    scripted.trust()
    assert scripted.fire(command="ls").decision == "deny"
    assert not (scripted.folder / "ran").exists()


def test_a_line_that_may_mean_too_much_is_never_run(scripted, monkeypatch):
    monkeypatch.setattr("hookturn.runners.command._MOST_LOOKED_AT", 50)
    scripted.config(guard("touch ran; true " + "a " * 50, "guard: true"))
    scripted.trust()
    assert scripted.fire(command="ls").decision == "deny"
    assert not (scripted.folder / "ran").exists()


def test_a_projects_own_name_is_no_pattern(project, tmp_path):
    project = type(project)(tmp_path / "a [b] *")
    project.write("hooks/own.sh", "x")
    project.config(guard("sh hooks/*.sh; sh hooks/own.sh"))
    (declaration,) = project.survey().declarations
    assert list(declaration.files) == [str(project.folder / "hooks/own.sh")]


@pytest.mark.parametrize("what", ["script", "command", "config"])
@pytest.mark.parametrize("kind", ["", "guard: true"])
def test_a_change_needs_trust_anew_and_a_guard_denies_until_then(scripted, what, kind):
    scripted.config(guard("[python3, hooks/no_force.py]", kind))
    scripted.trust()
    if what == "script":
        scripted.write("hooks/no_force.py", DENY + "#")
    elif what == "command":
        scripted.config(guard("[python3, -I, hooks/no_force.py]", kind))
    else:
        scripted.config(guard("[python3, hooks/no_force.py]", f"{kind}\n    config: {{a: 1}}"))
    out = scripted.fire(command="ls")
    assert out.decision == ("deny" if kind else None)
    if kind:
        assert "hookturn trust" in out.reason
    scripted.trust()
    assert scripted.fire(command="ls").decision is None


@pytest.mark.parametrize("kind", ["", "guard: true"])
def test_a_script_that_changes_while_the_engine_lives_does_not_run(scripted, kind):
    scripted.config(guard("[python3, hooks/no_force.py]", kind))
    scripted.trust()
    assembled = scripted.assemble()
    assert scripted.fire(assembled=assembled, command="ls").decision is None
    scripted.write("hooks/no_force.py", "open('ran', 'w')")
    out = scripted.fire(assembled=assembled, command="ls")
    assert out.decision == ("deny" if kind else None)
    assert "is not what was trusted" in out.failures[0].message
    assert not (scripted.folder / "ran").exists()


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            "[python3, hooks/gone.py]",
            "hooks/gone.py does not exist. Correct the path; it starts at the declaring file.",
        ),
        ("[./gone]", "gone does not exist. Correct the path."),
        (
            "[hooks/no_force.py]",
            "no_force.py is not executable. Run `chmod +x` on it, or name its interpreter first.",
        ),
    ],
)
def test_what_cannot_start_is_told_with_its_place_and_a_guard_denies(scripted, run, words):
    scripted.config(guard(run, "guard: true"))
    scripted.trust()
    assembled = scripted.assemble()
    assert row(assembled).state == "failed"
    assert only_problem(assembled).startswith("hookturn.yaml:5:")
    assert words in only_problem(assembled)
    out = scripted.fire(assembled=assembled, command="ls")
    assert out.denied
    assert "could not be started and fails closed" in out.reason


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("[no-such-program-9, x]", "there is no program 'no-such-program-9' in PATH"),
        ("no-such-program-9 --flag", "there is no program 'no-such-program-9' in PATH"),
        ("/no/such/program", "/no/such/program does not exist"),
    ],
)
def test_what_may_be_there_at_run_time_is_told_and_set_up(project, run, words):
    project.config(guard(run))
    project.trust()
    assembled = project.assemble()
    assert row(assembled).state == "loaded"
    assert words in only_problem(assembled)
    out = project.fire(assembled=assembled, command="ls")
    assert (out.decision, out.failures[0].error_type) == (None, "FailedToStart")


@pytest.mark.parametrize("trusted", [False, True])
def test_a_script_of_a_shell_line_that_is_not_there(project, trusted):
    from hookturn.project.unread import problems as unread

    project.write("hooks/there.sh", "exit 0\n").chmod(0o755)
    project.write("hooks/plain.sh", "exit 0\n").chmod(0o644)
    lines = ["hooks/gone.sh", "hooks/there.sh x", "./hooks/gone.sh --now", "hooks/plain.sh"]
    project.config(
        "hooks:\n"
        + "".join(
            f"  - {{name: h{n}, timings: [on_turn_start], run: {{command: {line}}}}}\n"
            for n, line in enumerate(lines)
        )
    )
    if trusted:
        project.trust()
    assembled = project.assemble()
    found = assembled.problems if trusted else unread(assembled.survey)
    assert [(problem.path, problem.cause) for problem in found] == [
        ("hooks[0].run.command", f"{project.folder}/hooks/gone.sh does not exist"),
        ("hooks[2].run.command", f"{project.folder}/./hooks/gone.sh does not exist"),
        ("hooks[3].run.command", f"{project.folder}/hooks/plain.sh is not executable"),
    ]
    assert found[-1].remedy == "Run `chmod +x` on it, or name its interpreter first."


@pytest.mark.parametrize(
    ("line", "gone"),
    [
        ("python3 gone.py", "gone.py"),
        ("env python3 -u gone.py --now", "gone.py"),
        ("sh gone.sh", "gone.sh"),
        ("python3 hooks/gone.py", "hooks/gone.py"),
        ("python3 hooks", "hooks"),
        ("python3 there.py", ""),
        ("bash ls", ""),  # it looks in PATH, too
        ("python3 -m json.tool", ""),
        ("python3 gone.py || true", ""),  # only a shell can tell what it runs
    ],
)
def test_a_script_that_an_interpreter_of_a_shell_line_does_not_find(project, line, gone):
    project.write("there.py", "")
    project.write("hooks/there.py", "")
    project.config(guard(f'"{line}"'))
    project.trust()
    problems = [problem.cause for problem in project.assemble().problems]
    what = "is no file" if gone == "hooks" else "does not exist"
    assert problems == ([f"{project.folder}/{gone} {what}"] if gone else [])


def test_a_line_that_is_a_comment(project):
    project.config(guard('"# echo x"'))
    project.trust()
    assert "the line is a comment" in only_problem(project.assemble())


@pytest.mark.parametrize(
    "run", ["'echo x; no-such'", "'[ -e x ] && no-such'", "cd sub", "FOO=1 no-such", "cd hooks && ./gone.sh"]
)
def test_lines_that_only_a_shell_understands_are_left_to_it(scripted, run):
    scripted.config(guard(run))
    scripted.trust()
    assert scripted.assemble().problems == []


def test_bad_entries_cost_only_themselves(project):
    project.config(
        """
        hooks:
          - {name: a, timings: [pre_tool_execution], run: {command: {x: 1}}}
          - {name: b, timings: [pre_tool_execution], run: {command: [1]}}
          - {name: c, timings: [nope], run: {command: "echo c >&2; exit 2"}}
          - {name: d, timings: [pre_tool_execution], run: {command: [python3, gone.py]}}
          - {name: e, timings: [pre_tool_execution], run: {command: "exit 9"}}
          - {name: f, timings: [pre_tool_execution], run: {command: "echo f >&2; exit 2"}}
        """
    )
    project.trust()
    assembled = project.assemble()
    assert len(assembled.problems) == 4
    out = project.fire(assembled=assembled, command="ls")
    assert (out.reason, out.by, [failure.hook for failure in out.failures]) == ("f", "f", ["e"])


def test_options_of_the_entry(project):
    project.config(
        """
        hooks:
          - {name: slow, timings: [pre_tool_execution], run: {command: sleep 60}, timeout: 0.3, on_failure: deny}
          - {name: reads, timings: [pre_tool_execution], run: {command: "echo r >&2; exit 2"}, filter: {tools: [read]}}
          - {name: watch, timings: [pre_tool_execution], run: {command: "echo w >&2; exit 2"}, mode: monitor, phase: before}
        """
    )
    project.trust()
    out = project.fire(command="ls")
    assert (out.decision, out.by) == ("deny", "slow")
    watch = next(record for record in out.hooks if record.name == "watch")
    assert watch.would
    assert project.fire(tool="read", file_path="x").decision == "deny"


def test_secrets_come_to_the_hook_and_nowhere_else(project, monkeypatch, hook_log):
    monkeypatch.setenv("MY_TOKEN", "very-secret-word")
    code = "import json, sys; t = json.load(sys.stdin)['config']['token']; sys.exit(t + ' is bad')"
    project.config(guard(f'[{sys.executable}, -c, "{code}"]', "config: {token: {env: MY_TOKEN}}"))
    project.trust()
    out = project.fire(command="ls")
    assert "is bad" in out.failures[0].message
    assert "very-secret-word" not in str(out.to_json()) + str(list(hook_log))


def test_a_dry_engine_lists_it_and_runs_it_only_live(project):
    project.config(guard("touch ran"))
    project.trust()
    for live in (False, True):
        assembled = project.assemble(dry_run=True, live=live)
        found = row(assembled)
        expected = ("loaded", "") if live else ("dry", "dry: runs only with --live")
        assert (found.state, found.reason, found.hooks) == (*expected, ["pre_tool_execution"])
        project.fire(assembled=assembled, command="ls")
        assert (project.folder / "ran").exists() == live


def test_many_of_which_one_matches(project):
    lines = [
        f"  - {{name: h{n}, timings: [pre_tool_execution], run: {{command: touch ran{n}}}, filter: {{tools: [t{n}]}}}}"
        for n in range(20)
    ]
    project.config("hooks:\n" + "\n".join(lines) + "\n")
    project.trust()
    assembled = project.assemble()
    assembled.engine.fire(events.PreToolExecution(tool="t7", args={}))
    assert [path.name for path in project.folder.glob("ran*")] == ["ran7"]


def test_a_huge_program_in_the_project_is_not_trusted_unseen(project):
    path = project.write("tool", "#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    with path.open("ab") as file:
        file.truncate(60_000_000)
    project.config(guard("[./tool]"))
    project.trust()
    out = project.fire(command="ls")
    assert "is not what was trusted" in out.failures[0].message


def test_a_shell_line_runs_in_the_project(project):
    project.write("a.txt", "x")
    project.config(guard("'cat a.txt >&2; exit 2'"))
    project.trust()
    assert project.fire(command="ls").reason == "x"


BROKEN_GUARD = """\
hooks:
- name: no-rm
  timings: [pre_tool_execution, on_session_end]
  run: {module: guard.py}
  filter: {tools: [bash]}
  guard: true
- name: other
  timings: [pre_tool_execution]
  run: {answer: {warn: careful}}
"""


@pytest.mark.parametrize(
    "line",
    ["guard: yes", 'guard: "true"', "gaurd: true", "Guard: on", "on_failure: Deny", "on_failures: deny"],
)
def test_a_mistake_in_the_very_line_that_makes_a_guard_denies(project, line):
    project.user(guard("echo no >&2; exit 2", line))
    out = project.fire(command="ls")
    assert out.decision == "deny" and "cannot be read and fails closed" in out.reason


@pytest.mark.parametrize("line", ["guard: no", 'guard: "false"', "on_failure: Ignore", "colour: red"])
def test_a_mistake_in_what_is_no_guard_denies_nothing(project, line):
    project.user(guard("echo no >&2; exit 2", line))
    assert project.fire(command="ls").decision is None


def test_a_guard_of_the_users_with_a_mistake_denies(project):
    """A guard that is not in force must be loud; here one of its timings can stop nothing."""
    project.user(BROKEN_GUARD)
    out = project.fire(command="rm x")
    assert (out.decision, out.by) == ("deny", "no-rm")
    assert "cannot be read and fails closed: a guard can stop nothing at on_session_end" in out.reason
    assert project.fire(tool="read", path="x").decision is None
    assert project.fire(tool="read", path="x").warnings == ("careful",)


@pytest.mark.parametrize("change", ["enabled: false", "mode: monitor", "guard: false"])
def test_a_guard_that_is_off_denies_nothing(project, change):
    key = change.partition(":")[0]
    lines = [line for line in BROKEN_GUARD.splitlines() if not line.strip().startswith(f"{key}:")]
    lines.insert(2, f"  {change}")
    project.user("\n".join(lines) + "\n")
    assert project.fire(command="rm x").decision is None


def test_an_untrusted_projects_guard_with_a_mistake_stops_nobody(project):
    project.config(BROKEN_GUARD)
    assert project.fire(command="rm x").decision is None


def test_a_trusted_guard_that_gets_a_mistake_denies(project):
    project.write("guard.py", "def pre_tool_execution(event):\n    return None\n")
    project.config(BROKEN_GUARD.replace(", on_session_end", ""))
    project.trust()
    assert project.fire(command="rm x").decision is None
    project.config(BROKEN_GUARD)
    assert project.fire(command="rm x").decision == "deny"


IMPOSSIBLE = {
    "pattern": r'{command: "sh x\ud800/*.sh"}',
    "home": r'{command: "~\ud800/x"}',
    "option": r'{command: "awk -f~\ud800/x"}',
    "variable": r'{command: "X=~\ud800; cd $X; sh *.sh"}',
    "list": r'{command: ["~\ud800/x", "~\ud800/y", "--rc=~\ud800/*"]}',
    "module": r'{module: "~\ud800/x.py"}',
    "javascript": r'{javascript: "~\ud800/x.js"}',
}


@pytest.mark.parametrize("run", IMPOSSIBLE)
def test_a_name_that_no_file_can_have_switches_no_other_hook_off(project, run):
    """A project that nobody trusts must not keep the user's guard from being asked."""
    project.user(guard("echo user >&2; exit 2"))
    project.config(f"hooks:\n  - {{name: odd, timings: [pre_tool_execution], run: {IMPOSSIBLE[run]}}}\n")
    assert project.fire(command="ls").reason == "user"
    project.trust()
    assert project.fire(command="ls").reason == "user"
