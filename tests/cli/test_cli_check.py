"""``hookturn check``: every problem with its place, cause and remedy."""

from __future__ import annotations

import pytest

BAD = """\
hooks:
  - name: a
    timings: [pre_tool_exection]
    run: {answer: {deny: "x"}}
  - name: b
    run: {module: missing.py}
  - name: b
    timings: [on_turn_start]
    run: {answer: {deny: "x"}}
mode: sometimes
permissions: {deny: ["bash(rm"]}
"""

GUARDED = "hooks:\n  - name: no-main\n    guard: true\n    timings: [pre_tool_execution]\n    run: {command: 'exit 0'}\n"


def test_a_clean_project(ruled):
    ran = ruled("check")
    assert (ran.code, ran.out, ran.err) == (0, "0 errors, 0 warnings in hookturn.yaml\n", "")
    assert ruled("check", "--json").json == {
        "schema": 1,
        "project": str(ruled.project),
        "files": ["hookturn.yaml"],
        "problems": [],
        "errors": 0,
        "warnings": 0,
    }


def test_no_configuration_at_all(cli):
    ran = cli("check")
    assert (ran.code, ran.out) == (0, f"0 errors, 0 warnings in {cli.project} (it has no configuration)\n")


def test_every_problem_has_its_place_cause_and_remedy(cli):
    cli.write("hookturn.yaml", BAD)
    ran = cli("check", "--json")
    assert ran.code == 1
    problems = ran.json["problems"]
    places = [
        (problem["file"], problem["line"], problem["path"])
        for problem in problems
        if problem["severity"] == "error"
    ]
    assert ("hookturn.yaml", 3, "hooks[0].timings[0]") in places
    assert ("hookturn.yaml", 10, "mode") in places
    assert ("hookturn.yaml", 11, "permissions.deny[0]") in places
    assert all(problem["cause"] and problem["remedy"] for problem in problems)
    assert ran.json["errors"] == len(places)
    first = next(problem for problem in problems if problem["line"] == 3)
    assert "did you mean 'pre_tool_execution'?" in first["cause"]
    # sorted by place
    assert places == sorted(places, key=lambda place: place[:2])
    human = cli("check")
    assert human.code == 1
    assert "error: hookturn.yaml:3:15: hooks[0].timings[0]: unknown timing 'pre_tool_exection'" in human.out
    assert human.out.rstrip().split("\n")[-1].startswith(f"{len(places)} errors, ")


def test_warnings_alone_are_no_failure(cli):
    cli.write("hookturn.yaml", "hooks: [{name: own, run: {module: own.py}}]")
    cli.write("own.py", "def on_turn_start(event): pass\n")
    ran = cli("check", "--json")
    assert (ran.code, ran.json["errors"], ran.json["warnings"]) == (0, 0, 1)
    assert "hookturn trust" in ran.json["problems"][0]["remedy"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"def on_turn_start(event)\n    pass\n", "own.py:1:25 is not Python: "),
        (b"\xff\xfe", " is not Python: "),
        (b"x = 1\0", "own.py is not Python: "),
        (None, "own.py cannot be read: No such file or directory"),
    ],
    ids=["syntax", "encoding", "NUL", "missing"],
)
def test_an_untrusted_module_is_read_and_not_run(cli, content, message):
    cli.write("hookturn.yaml", "hooks: [{name: own, run: {module: own.py}}]")
    if content is not None:
        cli.write("own.py", content)
    untrusted = cli("check")
    assert cli("trust", "--yes").code == (content is None)
    for ran in (untrusted, cli("check")):  # the same place, whether it is trusted or not: that of the hook
        assert ran.code == 1
        (told,) = [line for line in ran.out.splitlines() if message in line]
        assert told.startswith("error: hookturn.yaml:1:35: hooks[0].run.module: ")


def test_an_untrusted_module_has_no_effect(cli):
    cli.write("hookturn.yaml", "hooks: [{name: own, run: {module: own.py}}]")
    cli.write("own.py", "open('ran', 'w')\ndef on_turn_start(event): pass\n")
    for words in (
        ["check"],
        ["check", "."],
        ["check", "hookturn.yaml"],
        ["check", str(cli.project / "hookturn.yaml")],
    ):
        assert cli(*words).code == 0
        assert not (cli.project / "ran").exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_module_anywhere\n", "No module named 'no_such_module_anywhere'"),
        ("raise SystemExit(3)\n", "SystemExit"),
        (
            "def on_tern_start(event): pass\n",
            "has no hook; 'on_tern_start' is no timing (did you mean 'on_turn_start'?)",
        ),
        ("def on_turn_start(event, other): pass\n", "unknown parameter 'other'"),
        ("def on_turn_start(event):\n  pass\ndef on_load(ctx): 1/0\n", "on_load failed: ZeroDivisionError"),
    ],
)
def test_a_trusted_module_that_does_not_load(cli, source, message):
    cli.write("hookturn.yaml", "hooks: [{name: own, run: {module: own.py}}]")
    cli.write("own.py", source)
    assert cli("trust", "--yes").code == 0
    ran = cli("check")
    assert ran.code == 1
    assert message in ran.out
    assert "hookturn.yaml:1:" in ran.out
    assert "Traceback" not in ran.err


def test_a_file_that_is_named_counts_as_trusted(cli, tmp_path):
    config = tmp_path / "my config.yaml"
    config.write_text("hooks: [{name: own, run: {module: own.py}}]")
    (tmp_path / "own.py").write_text("import no_such_module_anywhere\n")
    ran = cli("check", str(config))
    assert ran.code == 1
    assert "no_such_module_anywhere" in ran.out
    assert "my config.yaml" in ran.out


def test_another_projects_folder(cli, tmp_path):
    (tmp_path / "hookturn.yaml").write_text("mod: 1\n")
    for path in (str(tmp_path), "..", str(tmp_path / "hookturn.yaml")):
        ran = cli("check", path, "--json")
        assert (ran.code, ran.json["project"]) == (1, str(tmp_path))
        assert ran.json["problems"][0]["path"] == "mod"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hooks: [\n", "not YAML"),
        (b"\xff\xfeh", "not UTF-8"),
        (b"a: &a [x]\nb: *c\n", "2:4: the alias '*c' has no anchor"),
        (b"[1]", "must be a mapping"),
        (b"hooks: 5", "expected a list"),
        (b"hooks: []\nhooks: []\n", "hooks"),
        (b"x: \x00", "not allowed in YAML"),
    ],
)
def test_bad_files(cli, content, message):
    cli.write("hookturn.yaml", content)
    ran = cli("check")
    assert ran.code == 1
    assert message in ran.out
    assert "hookturn.yaml" in ran.out
    assert "Traceback" not in ran.err
    assert cli("check", "--json").json["errors"] >= 1


def test_bom_and_crlf_are_fine(cli):
    cli.write("hookturn.yaml", b"\xef\xbb\xbfpermissions:\r\n  deny: [bash]\r\n")
    assert cli("check").code == 0


def test_a_plugin_that_cannot_be_loaded(cli, plugin_path):
    env = plugin_path("hookturn-demo", "[hookturn]\nbroken = broken_plugin\n", broken_plugin="1/0\n")
    env["HOOKTURN_DISABLE_PLUGIN_AUTOLOAD"] = ""
    ran = cli("check", env=env)
    assert ran.code == 1
    assert (
        "the plugin 'broken' of hookturn-demo 1.0: import of broken_plugin failed: ZeroDivisionError"
        in ran.out
    )


def test_a_plugin_that_is_not_installed(cli):
    cli.write("hookturn.yaml", "plugins: {no-such-plugin: {required: true}}\n")
    ran = cli("trust", "--yes")
    assert (ran.code, "no plugin named 'no-such-plugin' is installed" in ran.err) == (1, True)
    ran = cli("check", "--json")
    assert (ran.code, ran.json["problems"][0]["path"]) == (1, "plugins.no-such-plugin")
    ran = cli("fire", "on_user_prompt_submit", "--event", "-", "--json", input='{"prompt": "x"}')
    assert ran.json["decision"] == "block"
    assert "no-such-plugin" in ran.json["reason"]


def test_texts_of_a_file_cannot_drive_the_terminal(cli):
    cli.write("hookturn.yaml", '"\\e[2Jkey": 1\n"mo\\u202ed": 2\n')
    ran = cli("check")
    assert ran.code == 1
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out


@pytest.mark.parametrize(
    "mistake",
    [("timings", "timngs"), ("guard: true", "gaurd: true"), ("run:", "run: [")],
    ids=lambda words: words[1],
)
def test_a_mistake_stands_before_the_loss_of_the_guard_that_it_causes(cli, mistake):
    cli.write("hookturn.yaml", GUARDED)
    assert cli("trust", "--yes").code == 0
    cli.write("hookturn.yaml", GUARDED.replace(*mistake))
    *causes, effect, total = cli("check").out.splitlines()
    assert causes
    assert all(line.startswith("error: hookturn.yaml:") and "no-main is gone" not in line for line in causes)
    assert "no-main is gone" in effect
    # trusting the file as it is would give the guard up for a slip of the pen
    assert "Correct the file's other errors first" in effect
    assert total.startswith(f"{len(causes) + 1} errors")


def test_a_guard_that_was_taken_out_is_to_be_looked_at(cli):
    cli.write("hookturn.yaml", GUARDED)
    assert cli("trust", "--yes").code == 0
    cli.write("hookturn.yaml", "mode: enforce\n")
    assert "Run `hookturn trust` to look at it" in cli("check").out
