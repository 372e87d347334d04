"""The response-validation plugin in a real engine: what it finds, what it lets be, and that it cannot loop or hang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import Engine, RegistrationError, events, hookimpl
from hookturn.paths import config_root
from hookturn.testing import Model, Run, ScriptedAgent, ToolCall, User
from hookturn_builtins import response_validation
from hookturn_builtins.response_validation import Config, plugin

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
LIKELY = "password = 'k3Jx-9QpL2mVz8Rt!'"
SCHEMA = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
jsonschema = pytest.mark.skipif(
    find_spec("jsonschema") is None, reason="the extra jsonschema is not installed"
)


def settings(**values: object) -> Config:
    made = Config()
    for name, value in values.items():
        assert hasattr(made, name), name
        setattr(made, name, value)
    made.validate()
    return made


def engine(project: Path, config: Config | None = None, **options: object) -> Engine:
    made = Engine(project_dir=project, **options)  # type: ignore[arg-type]
    made.register(plugin(config), "response-validation", layer="builtin")
    return made


def play(project: Path, *steps: object, config: Config | None = None, **session: object) -> Run:
    with engine(project, config) as made:
        run = ScriptedAgent(made, cwd=str(project), **session).run(*steps)  # type: ignore[arg-type]
    assert not run.failures
    return run


def says(project: Path, text: str, *calls: ToolCall, **values: object) -> Run:
    """Play one turn with some calls and a final answer."""
    steps = [Model("", *calls)] if calls else []
    return play(project, User("do it"), *steps, Model(text), config=settings(**values))


def warnings(project: Path, text: str, *calls: ToolCall, **values: object) -> list[str]:
    return says(project, text, *calls, **values).warnings


# -- secrets ------------------------------------------------------------------------------------------


def test_secrets_warn_once_by_default_and_are_not_shown(tmp_path: Path) -> None:
    [warned] = warnings(tmp_path, f"Here\nit is: {TOKEN}")
    assert "a secret (github in line 2)" in warned
    assert TOKEN not in warned


def test_likely_secrets_warn_even_where_specific_ones_block(tmp_path: Path) -> None:
    run = says(tmp_path, LIKELY, secrets="block")
    assert [end.outcome.decision for end in run.ends] == [None]
    assert "what looks like a secret (password in line 1)" in run.warnings[0]


def test_a_specific_secret_blocks_by_option(tmp_path: Path) -> None:
    run = says(tmp_path, f"It is {TOKEN}", secrets="block")
    [end] = run.ends
    assert end.outcome.decision == "block"
    assert "github in line 1" in end.text
    assert TOKEN not in end.text


def test_a_blocked_answer_runs_no_tools(tmp_path: Path) -> None:
    run = play(
        tmp_path,
        User("do it"),
        Model(f"with {TOKEN}", ToolCall("bash", command="ls")),
        config=settings(secrets="block"),
    )
    assert run.executed == []


def test_a_turn_whose_answer_was_never_seen_is_checked_at_its_end(tmp_path: Path) -> None:
    with engine(tmp_path, settings(secrets="block")) as made:
        out = made.fire(events.TurnComplete(text=TOKEN, session_id="s", cwd=str(tmp_path)))
    assert out.decision == "block"


def test_what_is_switched_off_is_not_looked_for(tmp_path: Path) -> None:
    assert warnings(tmp_path, f"{TOKEN}\n{LIKELY}", secrets="off", likely_secrets="off") == []


def test_a_correction_names_no_secret_and_reaches_the_next_system_prompt(tmp_path: Path) -> None:
    run = play(
        tmp_path,
        User("one"),
        Model(f"It is {TOKEN}"),
        User("two"),
        Model("fine"),
        config=settings(secrets="inject"),
    )
    [_, second] = run.system_prompts
    assert any("Do not write secrets" in part for part in second)
    assert TOKEN not in "".join(second)


# -- patterns -----------------------------------------------------------------------------------------


def test_substrings_are_found_in_whatever_case_and_only_the_first_is_told(tmp_path: Path) -> None:
    assert warnings(tmp_path, "My PassWord and token", substrings=["token", "password"]) == [
        "response-validation: the answer holds 'token'."
    ]


@pytest.mark.parametrize("pattern", [r"TODO", r"(?i)\btodo\b:?", r"^TODO"])
def test_forbidden_patterns(tmp_path: Path, pattern: str) -> None:
    [warned] = warnings(tmp_path, "TODO: finish this", forbidden=[pattern])
    assert repr(pattern) in warned
    assert "line 1" in warned
    assert warnings(tmp_path, "all of it is finished", forbidden=[pattern]) == []


def test_required_patterns_are_for_final_answers_only(tmp_path: Path) -> None:
    config = settings(required=[r"^Summary:", "plain words"])
    run = play(
        tmp_path,
        User("do it"),
        Model("let me look", ToolCall("read", path="a.py")),
        Model("Summary: plain words"),
        config=config,
    )
    assert run.warnings == []
    assert len(warnings(tmp_path, "nothing of it", required=[r"^Summary:", "plain words"])) == 2


@pytest.mark.parametrize("name", ["required", "forbidden"])
def test_a_pattern_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: '\\(' is no regular expression"):
        settings(**{name: ["("]})


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(a+)+$", "a" * 60 + "!"),
        (r"(a|aa)+$", "a" * 80 + "!"),
        (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 60),
        (r"(?:.*,){20}x", "a," * 2000),
        (r"(x+x+)+y", "x" * 80),
    ],
)
def test_a_catastrophic_pattern_is_stopped_told_and_set_aside(
    tmp_path: Path, pattern: str, text: str
) -> None:
    config = settings(forbidden=[pattern, r"se\wond"], on_forbidden="block", seconds=0.2)
    begun = time.monotonic()
    run = play(
        tmp_path,
        User("1"),
        Model(text),
        User("2"),
        Model(text),
        User("3"),
        Model("the second pattern still counts"),
        config=config,
    )
    # Both would take years; this is no measurement.
    assert time.monotonic() - begun < 120
    assert [warning for warning in run.warnings if "takes too long" in warning] == [
        f"response-validation: the pattern {pattern!r} takes too long; it is set aside for this session."
    ]
    assert [end.outcome.decision for end in run.ends] == [None, None, "block"]


def test_the_worker_is_stopped_from_outside_where_it_cannot_stop_itself(tmp_path: Path, monkeypatch) -> None:
    from hookturn_builtins.response_validation import matching

    stuck = tmp_path / "worker.py"
    stuck.write_text(
        "import sys, time\nsys.stdin.buffer.read()\nprint('{\"found\": 1}', flush=True)\ntime.sleep(600)\n"
    )
    monkeypatch.setattr(matching, "__file__", str(stuck))
    monkeypatch.setattr(matching, "START_SECONDS", 0.5)
    result = matching.match("text", [r"\w", r"(x+)+"], 0.1)
    assert (result.found, result.slow) == ({r"\w": 1}, [r"(x+)+"])


def test_a_worker_that_dies_is_told(tmp_path: Path, monkeypatch) -> None:
    from hookturn_builtins.response_validation import matching

    (tmp_path / "worker.py").write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(matching, "__file__", str(tmp_path / "worker.py"))
    [warned] = warnings(tmp_path, "text", required=[r"\d"])
    assert warned == "response-validation: the answer was not checked: the worker ended with 3."


# -- JSON Schema --------------------------------------------------------------------------------------


@jsonschema
@pytest.mark.parametrize(
    "text", ['{"name": "a"}', '```json\n{"name": "a"}\n```', 'Here:\n```\n{"name": "a"}\n```\n']
)
def test_a_structured_answer_that_fits(tmp_path: Path, text: str) -> None:
    assert warnings(tmp_path, text, schema=SCHEMA) == []


@jsonschema
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{}", "$: 'name' is a required property"),
        ('{"name": 1}', "$.name: 1 is not of type 'string'"),
        ("[]", "$: [] is not of type 'object'"),
        ("plain words", "the answer is no JSON"),
        ('{"name": NaN}', "the answer is no JSON"),
        ("[" * 100_000, "the answer is no JSON"),
    ],
)
def test_a_structured_answer_that_does_not_fit(tmp_path: Path, text: str, told: str) -> None:
    [warned] = warnings(tmp_path, text, schema=SCHEMA)
    assert told in warned


@jsonschema
def test_other_answers_may_be_let_be(tmp_path: Path) -> None:
    assert warnings(tmp_path, "plain words", schema=SCHEMA, schema_when="json") == []
    assert len(warnings(tmp_path, "{}", schema=SCHEMA, schema_when="json")) == 1


@jsonschema
def test_the_hosts_own_result_is_the_structured_answer(tmp_path: Path) -> None:
    with engine(tmp_path, settings(schema=SCHEMA)) as made:
        good = made.fire(events.TurnComplete(text="words", result={"name": "a"}, session_id="s"))
        bad = made.fire(events.TurnComplete(text="words", result={"name": 2}, session_id="s"))
    assert (len(good.warnings), len(bad.warnings)) == (0, 1)


@jsonschema
def test_a_schema_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    assert len(warnings(tmp_path, "{}", schema="s.json")) == 1
    (tmp_path / "s.json").write_text("{")
    [warned] = warnings(tmp_path, "{}", schema="s.json", on_schema="block")
    assert "the schema s.json cannot be read" in warned
    [warned] = warnings(tmp_path, "{}", schema="../other.json")
    assert "leads out of" in warned


@jsonschema
@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "nonsense"}, "the schema cannot be used: $.type"),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "the schema cannot be used"),
        ({"$ref": "#"}, "the schema cannot be used: it leads back to itself"),
        ({"properties": {"a": {"pattern": "(a+)+$"}}}, "the schema takes too long"),
    ],
)
def test_a_schema_that_cannot_be_used(tmp_path: Path, schema: dict, told: str) -> None:
    [warned] = warnings(
        tmp_path, json.dumps({"a": "a" * 50 + "!"}), schema=schema, on_schema="block", seconds=0.5
    )
    assert told in warned


@jsonschema
def test_what_a_schema_says_of_a_value_shows_no_secret(tmp_path: Path) -> None:
    run = says(tmp_path, json.dumps({"name": [TOKEN]}), schema=SCHEMA)
    assert TOKEN not in "".join(run.warnings)


def test_without_jsonschema_a_schema_is_refused_and_nothing_else(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(response_validation, "_installed", lambda: False)
    with pytest.raises(RegistrationError, match="pip install jsonschema") as caught:
        config = Config()
        config.schema = SCHEMA
        plugin(config)
    assert caught.value.plugin == "response-validation"
    with pytest.raises(ValueError, match="schema needs the package jsonschema"):
        settings(schema=SCHEMA)
    assert warnings(tmp_path, "words") == []


# -- files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "I created `src/new.py`.",
        "I've also updated src/new.py for you.",
        "I created new.py with the parser.",
        "- **Created** `new.py`: the parser",
        "Created [new.py](src/new.py:12).",
        "I created the following files:\n\n- `src/new.py` with the parser\n",
        "I added a function `parse` to `src/new.py`.",
        "I read `src/new.py` and it is fine.",
        "Ich habe die Datei `src/new.py` erstellt.",
        "J'ai créé le fichier `src/new.py`.",
        "He creado `src/new.py`.",
        "Criei `src/new.py`.",
        "Ho creato `src/new.py`.",
        "Я создал `src/new.py`.",
        "我已经创建了 `src/new.py`。",
        "`src/new.py` を作成しました。",
        "`src/new.py` 파일을 생성했습니다.",
    ],
)
def test_a_claim_about_a_file_that_is_not_there(tmp_path: Path, text: str) -> None:
    [warned] = warnings(tmp_path, text)
    assert "new.py` as written or read, and no such file is in the workspace" in warned
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "new.py").touch()
    assert warnings(tmp_path, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "You could create `src/new.py`.",
        "I will create `src/new.py` next.",
        "If I created `src/new.py`, it would be found.",
        "I did not create `src/new.py`.",
        "I have not updated `src/new.py`.",
        "I read `src/new.py`, which does not exist.",
        "I created `new.py` and removed it again: `new.py` was temporary.",
        "```\nI created `src/new.py`.\n```",
        "~~~\nI created `src/new.py`.",
        "> I created `src/new.py`.",
        "| I created `src/new.py` | yes |",
        "I fixed `https://example.com/new.py`.",
        "I fixed `example.com/new.py`.",
        "I updated `*.py` and `src/**/new.py`.",
        "I updated `/etc/new.conf` and `../new.py` and `~/new.py`.",
        "I added `console.log` and `np.array` and `v1.2`.",
        "I updated the docs to mention `src/new.py`.",
        "I created a project that reads `config.json`.",
        "I created it like `path/to/new.py` or `your_file.py`.",
        "I wrote it in `Node.js`.",
        "I wrote it in Node.js and Vue.js, e.g. for v1.2 and foo.bar.",
        "I created `$HOME/new.py`, `<name>.py` and `{id}.json`.",
        "I added `@scope/pkg/index.js`.",
        "I fixed it. See `src/new.py`.",
        "I created `" + "a/" * 2000 + "new.py`.",
    ],
)
def test_what_is_no_claim_about_a_file(tmp_path: Path, text: str) -> None:
    assert warnings(tmp_path, text) == []


def test_files_are_found_by_their_end_and_in_whatever_case(tmp_path: Path) -> None:
    (tmp_path / "packages" / "core").mkdir(parents=True)
    (tmp_path / "packages" / "core" / "Readme.md").touch()
    assert warnings(tmp_path, "I updated `README.md` and `core/readme.md`.") == []


def test_what_the_session_wrote_or_named_in_a_command_is_believed(tmp_path: Path) -> None:
    assert warnings(tmp_path, "I created `gone.py`.", ToolCall("write", path="gone.py")) == []
    assert (
        warnings(tmp_path, "I created `gone.py`.", ToolCall("bash", command="touch gone.py; mv gone.py x"))
        == []
    )


def test_nothing_outside_of_the_workspace_is_looked_at(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "out").symlink_to(tmp_path)
    assert warnings(project, "I created `out/none.py`.") == []
    assert warnings(project, f"I created `{tmp_path}/none.py`.") == []
    assert len(warnings(project, f"I created `{project}/none.py`.")) == 1


def test_a_workspace_that_is_not_here_or_too_large_is_not_judged(tmp_path: Path, monkeypatch) -> None:
    from hookturn_builtins.response_validation import workspace

    with engine(tmp_path) as made:
        for folder in (str(tmp_path / "none"), "/", os.path.expanduser("~")):
            event = events.TurnComplete(text="I created `a.py`.", session_id="s", cwd=folder)
            assert not made.fire(event).warnings
    for number in range(5):
        (tmp_path / f"{number}.txt").touch()
    monkeypatch.setattr(workspace, "MAX_ENTRIES", 4)
    assert warnings(tmp_path, "I created `a.py`.") == []


# -- commands -----------------------------------------------------------------------------------------

LS = ToolCall("bash", command="ls -la")


@pytest.mark.parametrize(
    "text",
    [
        "I ran `pytest -q` and all tests pass.",
        "I ran pytest and all tests pass.",
        "I ran all the tests with cargo test.",
        "Ran `npm test`: 12 passed.",
        "I've re-run `cargo test`.",
        "I have run `go vet ./...`.",
        "I verified it with `ruff check .`.",
        "I ran `cd x && FOO=1 uv run pytest -q`.",
        "Ich habe `pytest` ausgeführt.",
        "J'ai lancé `pytest`.",
        "He ejecutado `pytest`.",
        "我运行了 `pytest`。",
        "`pytest` を実行しました。",
    ],
)
def test_a_claim_about_a_command_that_never_ran(tmp_path: Path, text: str) -> None:
    [warned] = warnings(tmp_path, text, LS)
    assert "no such command ran in this session" in warned


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("python3 -m pytest tests", "I ran `pytest`."),
        ("cd app && .venv/bin/pytest -x", "I ran `python -m pytest`."),
        ("npm run test", "I ran `npm test`."),
        ("npm run ci", "I ran `eslint .`."),  # a script may run anything
        ("make check", "I ran `pytest`."),
        ("./ci.sh", "I ran `mypy`."),
        ("bash -c 'pytest'", "I ran `pytest`."),
        ("git -C x status", "I ran `git status`."),
    ],
)
def test_a_claim_about_a_command_that_may_have_run(tmp_path: Path, command: str, text: str) -> None:
    assert warnings(tmp_path, text, ToolCall("bash", command=command)) == []


@pytest.mark.parametrize(
    "text",
    [
        "You should run `pytest`.",
        "I did not run `pytest`.",
        "I could not run `pytest`.",
        "I ran `main` and `TestParser`.",
        "I ran into `make` problems.",
        "I ran into pytest problems.",
        "I ran the pytest-like suite.",
        "When I ran `pytest`, nothing happened?",
        "I will run `pytest` next.",
        "```\nI ran `pytest`\n```",
    ],
)
def test_what_is_no_claim_about_a_command(tmp_path: Path, text: str) -> None:
    assert warnings(tmp_path, text, LS) == []


def test_a_denied_command_did_not_run_and_an_earlier_turns_did(tmp_path: Path) -> None:
    from hookturn import Deny, hookimpl

    class No:
        @hookimpl(tools=["bash"])
        def pre_tool_execution(self, event):
            return Deny("no tests") if "pytest" in event.command else None

    with engine(tmp_path) as made:
        made.register(No(), "no")
        run = ScriptedAgent(made, cwd=str(tmp_path)).run(
            User("1"),
            Model("", ToolCall("bash", command="ruff check"), ToolCall("bash", command="pytest")),
            Model("I ran `ruff check` and `pytest`."),
            User("2"),
            Model("As I said: I ran `ruff check`."),
        )
    [warned] = run.warnings
    assert "`pytest`" in warned
    assert "ruff" not in warned


@pytest.mark.parametrize("source", ["resume", "fork", "compact"])
def test_nothing_is_said_of_commands_when_the_session_began_elsewhere(tmp_path: Path, source: str) -> None:
    run = play(tmp_path, User("1"), Model("I ran `pytest`."), source=source)
    assert run.warnings == []
    with engine(tmp_path) as made:
        out = made.fire(events.TurnComplete(text="I ran `pytest`.", session_id="s", cwd=str(tmp_path)))
    assert not out.warnings


def test_what_ran_is_remembered_over_processes_without_its_secrets(tmp_path: Path) -> None:
    state = tmp_path / "state"
    project = tmp_path / "project"
    project.mkdir()
    with (
        engine(project, state_dir=state) as made,
        made.session(session_id="s", cwd=str(project)) as session,
        session.turn() as turn,
    ):
        turn.call_tool("bash", {"command": f"TOKEN={TOKEN} pytest"}, lambda **_: "")
    assert not any(TOKEN.encode() in path.read_bytes() for path in state.rglob("*") if path.is_file())
    with engine(project, state_dir=state) as made:
        for text, count in (("I ran `pytest`.", 0), ("I ran `cargo test`.", 1)):
            out = made.fire(events.TurnComplete(text=text, session_id="s", cwd=str(project)))
            assert len(out.warnings) == count, text


def test_a_session_with_very_many_words_is_believed(tmp_path: Path) -> None:
    calls = [ToolCall("bash", command=" ".join(f"w{n}-{i}" for i in range(300))) for n in range(10)]
    assert warnings(tmp_path, "I ran `pytest`.", *calls) == []


# -- actions ------------------------------------------------------------------------------------------


def test_continue_makes_the_turn_go_on_and_is_capped(tmp_path: Path) -> None:
    run = play(
        tmp_path,
        User("do it"),
        *[Model("I ran `pytest`.")] * 8,
        config=settings(commands="continue", max_corrections=3),
    )
    assert len(run.ends) == 4
    assert [bool(end.again) for end in run.ends] == [True, True, True, False]
    assert "Run it now, or say that you did not." in run.ends[0].again
    assert (
        run.warnings[-1]
        == "response-validation: the model was corrected 3 times in a row; it is not corrected again."
    )


def test_the_cap_holds_over_turns_and_a_clean_answer_lifts_it(tmp_path: Path) -> None:
    bad, good = Model("I ran `pytest`."), Model("I ran nothing.")
    steps: list[object] = []
    for answer in (bad, bad, bad, good, bad, good):
        steps += [User("go"), answer]
    run = play(tmp_path, *steps, config=settings(commands="inject"))
    corrected = ["no such command ran" in "".join(prompt) for prompt in run.system_prompts]
    # The correction of an answer stands in the prompt after it.
    assert corrected == [False, True, True, False, False, True]


def test_answers_between_tools_are_corrected_in_the_same_turn(tmp_path: Path) -> None:
    run = play(
        tmp_path,
        User("go"),
        Model("hell", ToolCall("bash", command="ls")),
        Model("fine"),
        config=settings(substrings=["hell"], on_substrings="inject"),
    )
    assert "Your last answer held 'hell'" in "".join(run.system_prompts[1])
    assert run.warnings == ["response-validation: the answer holds 'hell'."]


def test_no_cap_on_blocks(tmp_path: Path) -> None:
    steps = [step for _ in range(5) for step in (User("go"), Model("hell"))]
    run = play(
        tmp_path, *steps, config=settings(substrings=["hell"], on_substrings="block", max_corrections=0)
    )
    assert [end.outcome.decision for end in run.ends] == ["block"] * 5


def test_a_sub_agents_answer_need_not_be_structured(tmp_path: Path) -> None:
    with (
        engine(tmp_path, settings(required=["never"])) as made,
        made.session(cwd=str(tmp_path)) as session,
        session.turn() as turn,
    ):
        with turn.subagent("helper") as sub:
            end = sub.complete("words")
        assert end.warnings == []
        assert len(turn.complete("words").warnings) == 1


def test_a_full_state_folder_costs_one_warning(tmp_path: Path, monkeypatch) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "state").write_text("a file where the folder should be")
    with engine(project, settings(commands="continue"), state_dir=tmp_path / "state") as made:
        for event in (
            events.SessionStart(session_id="s"),
            events.PostToolExecution(tool="bash", args={"command": "ls"}, session_id="s"),
        ):
            assert not made.fire(event).failures
        first = made.fire(events.TurnComplete(text="I ran `pytest`.", session_id="s", cwd=str(project)))
        more = [made.fire(events.TurnComplete(text="I ran `pytest`.", session_id="s")) for _ in range(3)]
    assert not first.failures
    assert "The state folder cannot be written" in first.warnings[0]
    assert first.continue_reason
    assert [bool(out.continue_reason) for out in more] == [True, False, False]
    assert not any("state folder" in warning for out in more for warning in out.warnings)


# -- robustness ---------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        "I created ",
        "`",
        "a/b.py",
        "I ran ",
        "pytest",
        "\n",
        "```",
        "- ",
        "[x](",
        ")",
        "\ud800",
        "\0",
        "ich habe ",
        "を",
        ".",
        ":",
        "é",
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=60).map("".join))
def test_no_text_breaks_it(tmp_path_factory, text: str) -> None:
    with engine(tmp_path_factory.getbasetemp()) as made:
        for event in (
            events.SessionStart(session_id="s"),
            events.ModelResponse(text=text, session_id="s"),
            events.TurnComplete(text=text, session_id="s", cwd=str(tmp_path_factory.getbasetemp())),
        ):
            assert not made.fire(event).failures


@pytest.mark.parametrize(
    "piece",
    [
        "`",
        "I created `a",
        "I created `a.py`, ",
        "[",
        "```json\n",
        "a/",
        "I ran ",
        "ich habe ",
        "**I created** `x` ",
        "\n",
    ],
)
def test_huge_answers_are_read_in_bounded_time(tmp_path: Path, piece: str) -> None:
    text = piece * (500_000 // len(piece))
    begun = time.process_time()
    with engine(tmp_path, settings(secrets="off", likely_secrets="off")) as made:
        made.fire(events.SessionStart(session_id="s"))
        out = made.fire(events.TurnComplete(text=text, session_id="s", cwd=str(tmp_path)))
    assert not out.failures
    assert time.process_time() - begun < 30  # what backtracks takes hours


# -- recorded sessions, and the command line ------------------------------------------------------------

RECORDINGS = sorted((Path(__file__).parents[1] / "data" / "transcripts").rglob("*.jsonl"))


def replay(project: Path, *words: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "hookturn", "replay", "--json", *words],
        cwd=project,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_recorded_sessions_of_real_agents_give_no_false_findings(tmp_path: Path) -> None:
    from hookturn.replay.player import Watcher
    from hookturn.replay.run import open_recording
    from hookturn.replay.run import replay as run

    told: list[str] = []
    answers: list[str] = []

    class Listening:
        @hookimpl(trylast=True)
        def on_outcome(self, event):
            told.extend(event.outcome.warnings)
            if event.of in ("on_model_response", "on_turn_complete") and event.before.text:
                answers.append(event.before.text)

    assert len(RECORDINGS) > 30
    for path in RECORDINGS:
        with engine(tmp_path, output_dir=tmp_path / "out") as made:
            made.register(Listening(), "listening")
            run(open_recording(str(path)), made, Watcher())
    assert len(answers) > 100
    # One of them holds a secret on purpose.
    assert told == ["response-validation: the answer holds a secret (aws in line 1)."]


def test_replay_of_a_session_that_lies(tmp_path: Path) -> None:
    lines = [
        events.SessionStart(session_id="s", cwd=str(tmp_path)),
        events.UserPromptSubmit(prompt="fix it", session_id="s"),
        events.TurnStart(session_id="s", turn=1),
        events.ModelResponse(text=f"I created `a.py` with {TOKEN}. I ran `pytest`.", session_id="s", turn=1),
        events.TurnComplete(text=f"I created `a.py` with {TOKEN}. I ran `pytest`.", session_id="s", turn=1),
        events.SessionEnd(session_id="s"),
    ]
    (tmp_path / "rec.jsonl").write_text("".join(json.dumps(event.to_json()) + "\n" for event in lines))
    (tmp_path / "hookturn.yaml").write_text("plugins: {response-validation: true}\n")
    subprocess.run(
        [sys.executable, "-m", "hookturn", "trust", "--yes"], cwd=tmp_path, check=True, capture_output=True
    )
    assert replay(tmp_path, "rec.jsonl")["warnings"] == 3


def test_settings_in_a_file_are_checked(tmp_path: Path) -> None:
    config_root().mkdir(parents=True)
    (config_root() / "hookturn.yaml").write_text(
        "plugins: {response-validation: {secrets: shout, forbidden: ['('], commands: block}}\n"
    )
    made = Engine.from_project(tmp_path)
    made.close()
    [refused] = made.failed
    assert refused.plugin == "response-validation"
