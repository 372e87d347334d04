"""What exists is documented, and what is documented exists."""

from __future__ import annotations

import ast
import inspect
import re
from importlib.metadata import EntryPoint, distribution
from pathlib import Path

import pytest

import hookturn
import hookturn.testing
from hookturn import events
from hookturn.spec import answers, timings
from hookturn.spec.record import view

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not beside the tests")


def read(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def headings(text: str, level: int) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    return re.findall(rf"^{'#' * level} (.+)$", text, re.M)


def section(text: str, heading: str) -> str:
    """Return the text below a heading, up to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.M)
    assert found, f"there is no section {heading!r}"
    rest = text[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.M)
    return rest[: end.start()] if end else rest


def rows(text: str, header: str) -> list[list[str]]:
    """Return the rows of the table whose first line begins with these headers."""
    start = re.search(rf"^\| {re.escape(header)}.*\|$", text, re.M)
    assert start, f"there is no table | {header}"
    lines = text[start.end() + 1 :].split("\n")
    found = []
    for line in lines[1:]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# -- timings ------------------------------------------------------------------------------------------

ALL = [*timings.TIMINGS, "on_load", "on_dispose"]
COMMON = [name for name in events.Event._fields if name not in ("type", "properties", "accepts")]


def default_of(event, name):
    if name in event._required:
        return "required"
    value = inspect.getattr_static(event, name)
    return "computed" if isinstance(value, view) else f"`{value!r}`"


def type_of(event, name):
    return next(
        cls.__dict__["__annotations__"][name]
        for cls in event.__mro__
        if name in cls.__dict__.get("__annotations__", {})
    )


def test_each_timing_has_a_page_and_each_page_a_timing():
    pages = {page.stem for page in (DOCS / "timings").glob("*.md")} - {"index"}
    assert pages == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_a_timings_page_tells_its_contract(name, blocks):
    text = read(f"timings/{name}.md")
    assert headings(text, 1) == [name]
    assert [heading for heading in headings(text, 2) if heading != "Event"] == [
        "When", "Answers", "Order and stop", "Example",
    ]  # fmt: skip
    code = blocks(DOCS / f"timings/{name}.md")
    if name in timings.TIMINGS:
        timing = timings.TIMINGS[name]
        kind = timing.event.__name__
        signature = f"def {name}(event: events.{kind}, ctx: Context) -> Answer | list[Answer] | None: ...\n"
        since = timing.since
        assert f"`events.{kind}`" in section(text, "Event")
        if timing.deprecated:
            assert f"Deprecated: use [{timing.deprecated}]({timing.deprecated}.md)" in text
    else:
        signature, since = f"def {name}(ctx: Context) -> None: ...\n", "0.1"
    assert code[0].text == signature
    assert f"\nSince {since}." in text
    example = code[-2 if code[-1].lang == "output" else -1]
    assert example.lang == "python"
    assert f"def {name}(" in example.text


@pytest.mark.parametrize("name", timings.TIMINGS)
def test_a_timings_page_lists_its_events_fields(name):
    event = timings.TIMINGS[name].event
    own = [field for field in event._fields if field not in COMMON]
    expected = [[f"`{field}`", f"`{type_of(event, field)}`", default_of(event, field)] for field in own]
    listed = rows(section(read(f"timings/{name}.md"), "Event"), "Field")
    assert sorted(row[:3] for row in listed) == sorted(expected)
    assert all(row[3] for row in listed)


@pytest.mark.parametrize("name", timings.TIMINGS)
def test_a_timings_page_lists_its_answers(name):
    listed = rows(section(read(f"timings/{name}.md"), "Answers"), "Answer")
    assert sorted(names(row[0])[0] for row in listed) == sorted(
        kind.__name__ for kind in timings.TIMINGS[name].answers
    )
    assert all(row[1] for row in listed)


def test_the_overview_tells_every_timings_answers_and_main_field():
    listed = rows(read("timings/index.md"), "Timing | Carries")
    assert [re.match(r"\[(\w+)\]", row[0])[1] for row in listed] == list(timings.THIRTEEN)
    for (_, carries, may), name in zip(listed, timings.THIRTEEN, strict=True):
        timing = timings.TIMINGS[name]
        said = [] if may == "–" else may.split(", ")
        assert sorted(said) == sorted(kind.__name__ for kind in timing.answers if kind is not hookturn.Warn)
        assert re.findall(r"\*\*(\w+)\*\*", carries) == [field for field in (timing.main,) if field]
        assert set(re.findall(r"\w+", carries)) <= set(timing.event._fields)


def test_the_fields_and_views_of_all_events_are_listed():
    text = read("timings/index.md")
    listed = rows(section(text, "Fields of every event"), "Field")
    assert [names(row[0])[0] for row in listed] == COMMON
    for field, kind, *_ in listed:
        assert names(kind)[0] == type_of(events.Event, names(field)[0])
    views = {
        name
        for name, value in vars(events.ToolEvent).items()
        if isinstance(value, view) and not name.startswith("_")
    }
    assert {names(row[0])[0] for row in rows(section(text, "Tool views"), "View")} == views


def test_the_options_of_hookimpl_are_listed():
    taken = set(inspect.signature(type(hookturn.hookimpl).__call__).parameters) - {
        "self", "function", "wrapper", "hookwrapper",
    }  # fmt: skip
    listed = rows(section(read("timings/index.md"), "A hook"), "Option")
    assert {names(row[0])[0] for row in listed} == taken


def test_everything_that_a_context_can_do_is_listed():
    tree = ast.parse((ROOT / "hookspec/hookturn/spec/context.py").read_text(encoding="utf-8"))
    contract = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name == "Context" and node.bases
    )
    can = {node.name for node in contract.body if isinstance(node, ast.FunctionDef)}
    listed = rows(section(read("timings/index.md"), "The context"), "Name")
    assert {name.partition("(")[0] for row in listed for name in names(row[0])} == can


# -- answers ------------------------------------------------------------------------------------------


def takers(kind) -> list[str]:
    return [name for name, timing in timings.TIMINGS.items() if kind in timing.answers and name != "on_event"]


def test_each_answer_has_a_section_and_each_section_an_answer():
    kinds = {kind.__name__ for kind in answers.WIRE.values()}
    assert set(headings(read("answers.md"), 2)) == kinds | {"In Python"}


@pytest.mark.parametrize("key", answers.WIRE)
def test_an_answers_section_tells_parameters_places_and_wire_form(key):
    kind = answers.WIRE[key]
    text = section(read("answers.md"), kind.__name__)
    fields = {"Rewrite": ["value", "**fields"], "Recover": ["strategy", "**config"]}.get(
        kind.__name__, list(kind._fields)
    )
    assert re.findall(r"^- `([^`]+)`:", text, re.M) == fields
    forms = re.findall(r"`(\{[^`]*\})`", text[text.index("- JSON:") :])
    assert any(form.startswith(f'{{"{key}":') for form in forms)
    row = next(row for row in rows(read("answers.md"), "Answer") if row[0].startswith(f"[{kind.__name__}]"))
    assert row[2] == ("everywhere" if kind is hookturn.Warn else ", ".join(takers(kind)))


def test_the_wire_forms_are_read():
    forms = [
        form
        for line in re.findall(r"^- JSON: (.*)$", read("answers.md"), re.M)
        for form in re.findall(r"`(\{[^`]*\})`", line)
    ]
    assert len(forms) >= len(answers.WIRE)
    for form in forms:
        assert answers.from_json(ast.literal_eval(form.replace("true", "True").replace(": value", ": 'v'")))


def test_the_recover_strategies_are_listed():
    line = next(line for line in section(read("answers.md"), "Recover").split("\n") if "`strategy`" in line)
    assert tuple(names(line)[1:]) == answers.STRATEGIES


# -- commands -----------------------------------------------------------------------------------------

EVERYWHERE = {"-h", "--help", "--project", "--json"}


def entry_points(group: str) -> list[EntryPoint]:
    """Return the entry points that hookturn itself brings."""
    return [point for point in distribution("hookturn").entry_points if point.group == group]


def commands() -> list[str]:
    from hookturn.cli.dispatch import COMMANDS, GROUP

    return [*COMMANDS, *(point.name for point in entry_points(GROUP))]


def help_of(words: list[str], capsys) -> str:
    from hookturn.cli import main

    assert main([*words, "--help"]) == 0
    return capsys.readouterr().out


def options_of(text: str) -> set[str]:
    found = set()
    for line in re.findall(r"^  (\S.*)$", text, re.M):
        spelled = re.split(r"  +", line)[0]
        found |= set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", spelled)) or {spelled.split()[0].upper()}
    return found - EVERYWHERE


def documented(text: str) -> set[str]:
    if "| Option |" not in text:
        return set()
    return {
        word
        for row in rows(text, "Option")
        for name in names(row[0])
        for word in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", name)[:1] or [name]
    }


def test_each_command_has_a_page_and_each_page_a_command():
    pages = {page.stem for page in (DOCS / "commands").glob("*.md")} - {"index"}
    assert pages == set(commands())
    listed = rows(read("commands/index.md"), "Command")
    assert {re.match(r"\[(\w+)\]\(\w+\.md\)", row[0])[1] for row in listed} == pages


@pytest.mark.parametrize("name", commands())
def test_a_commands_page_lists_its_options(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = read(f"commands/{name}.md")
    assert headings(text, 1) == [name]
    shown = help_of([name], capsys)
    inner = re.findall(r"^    (\w+) ", shown, re.M) if "COMMAND" in shown else []
    for word in inner:
        part = section(text, f"{name} {word}")
        assert options_of(help_of([name, word], capsys)) == documented(part), word
        assert "Exit codes:" in part
    if not inner:
        assert options_of(shown) == documented(text)
        assert "Exit codes:" in text
    assert "## Example" in text


def test_the_options_of_every_command_are_listed():
    listed = rows(section(read("commands/index.md"), "Options of every command"), "Option")
    assert {word for row in listed for name in names(row[0]) for word in name.split() if word[0] == "-"} == (
        EVERYWHERE
    )


# -- configuration ------------------------------------------------------------------------------------


def test_every_key_of_the_configuration_is_listed_and_no_other():
    from hookturn.project import model, webhooks
    from hookturn.runners.entry import KINDS

    control = set(model.PluginEntry._fields) - {"name", "settings", "layer", "file", "line", "column"}
    keys = {
        *model.TOP,
        *(f"hooks[].{key}" for key in model.HOOK),
        *(f"hooks[].filter.{key}" for key in model.FILTER),
        *(f"hooks[].run.{key}" for key in KINDS),
        *(f"permissions.{key}" for key in model.PERMISSIONS),
        *(f"plugins.NAME.{key}" for key in control),
        *(f"webhooks.{key}" for key in webhooks.NETWORK),
    }
    listed = rows(section(read("configuration.md"), "All keys"), "Key")
    assert sorted(names(row[0])[0] for row in listed) == sorted(keys)
    assert all(all(row) for row in listed)


def test_every_kind_of_hook_is_named():
    from hookturn.runners.entry import KINDS

    text = section(read("configuration.md"), "run")
    assert set(re.findall(r"^- `(\w+)[:`]", text, re.M)) == {*KINDS}


def test_the_environment_variables_are_listed():
    used = set()
    for folder in ("hookspec", "builtins"):
        for file in (ROOT / folder).rglob("*.py"):
            used |= set(re.findall(r'"(HOOKTURN_[A-Z_]+)"', file.read_text(encoding="utf-8")))
    listed = rows(section(read("configuration.md"), "Environment and command line"), "Variable")
    assert {names(row[0])[0] for row in listed} == used
    for file in (ROOT / "hookspec").rglob("*.*js"):
        said = re.findall(r"HOOKTURN_[A-Z_]+", file.read_text(encoding="utf-8"))
        assert set(said) <= used, file


def test_every_key_of_a_webhook_is_listed_and_no_other():
    from hookturn.runners.webhook import RUN

    assert {names(row[0])[0] for row in rows(read("webhooks.md"), "Key of `webhook`")} == set(RUN)


# -- other agents -------------------------------------------------------------------------------------


def pages(folder: str) -> set[str]:
    return {page.stem for page in (DOCS / folder).glob("*.md")} - {"index"}


def linked(folder: str, header: str) -> list[str]:
    """Return the pages that the table of a folder's index leads to."""
    return [
        page
        for row in rows(read(f"{folder}/index.md"), header)
        for page in re.findall(r"\((.+)\.md\)", row[-1])
    ]


def test_each_dialect_has_a_page_and_each_page_a_dialect():
    from hookturn.project.foreign import DIALECTS

    assert pages("dialects") == set(DIALECTS)
    assert linked("dialects", "Dialect") == list(DIALECTS)
    assert [names(row[0])[0] for row in rows(read("dialects/index.md"), "Dialect")] == list(DIALECTS)


def test_the_settings_of_every_dialect_are_listed():
    from hookturn.project.foreign import COMMON, DIALECTS, dialect

    expected = {(option, "all") for option in COMMON}
    values = {}
    for name in DIALECTS:
        for option, known in dialect(name).SETTINGS.items():
            expected.add((option, f"`{name}`"))
            values[option] = () if callable(known) else known
    listed = rows(section(read("dialects/index.md"), "Settings"), "Option")
    assert {(names(row[0])[0], row[1]) for row in listed} == expected
    for option, _, allowed, default, meaning in listed:
        known = values.get(names(option)[0])
        if known:
            assert set(names(allowed)) == {str(word) for word in known}
            assert names(default) == [str(known[0])]
        assert meaning


def test_the_keys_of_roles_and_hook_files_are_listed():
    from hookturn.agents.atomcode import hooks_json, hooks_toml
    from hookturn.agents.rolebox import install, reading

    role = read("dialects/rolebox.md")
    fields = {name.partition(".")[0] for row in rows(role, "Field") for name in names(row[0])}
    assert fields == set(reading.HOOK) - {"description"}
    assert [name for row in rows(role, "Event") for name in names(row[0])] == install.EVENTS
    recovery = section(role, "Recovery and guards")
    assert {*reading.RECOVERY, *reading.GUARDS, *reading.CATEGORIES} <= set(re.findall(r"\w+", recovery))
    atomcode = read("dialects/atomcode.md")
    scripts = rows(section(atomcode, "hooks.toml: scripts"), "Key")
    assert {name for row in scripts for name in names(row[0])} == set(hooks_toml.HOOKS)
    said = set(re.findall(r"\w+", section(atomcode, "hooks.toml: webhooks")))
    assert {*hooks_toml.WEBHOOKS, *hooks_toml.BATCHES} - {"description"} <= said
    assert set(hooks_json.KEYS) - {"enabled"} <= set(re.findall(r"\w+", section(atomcode, "hooks.json")))


def test_each_bridge_has_a_page_and_each_page_a_bridge():
    from hookturn.agents.bridge import AGENTS

    assert pages("bridges") == set(AGENTS)
    assert linked("bridges", "Agent") == list(AGENTS)


@pytest.mark.parametrize("command", ["bridge", "install", "uninstall"])
def test_the_agents_are_listed_where_one_is_named(command):
    from hookturn.agents.bridge import AGENTS

    row = next(row for row in rows(read(f"commands/{command}.md"), "Option") if names(row[0]) == ["AGENT"])
    assert set(re.findall(r"[a-z-]+", row[1])) >= set(AGENTS)
    if command == "install":
        assert [row[0] for row in rows(read("commands/install.md"), "Agent | Project")] == list(AGENTS)


# -- builtins -----------------------------------------------------------------------------------------


def builtins() -> dict[str, object]:
    from hookturn.project.settings import config_of

    return {point.name: config_of(point.load()) for point in entry_points("hookturn")}


def test_each_builtin_has_a_page_and_each_page_a_builtin():
    from hookturn.project.self_protection import NAME

    assert pages("builtins") == {*builtins(), NAME}
    listed = rows(read("builtins/index.md"), "Builtin")
    assert {re.match(r"\[([\w-]+)\]\(\1\.md\)", row[0])[1] for row in listed} == {*builtins(), NAME}


def test_the_builtins_that_are_on_are_told(tmp_path):
    from hookturn.project.assemble import assemble

    (tmp_path / "hookturn.yaml").write_text("mode: enforce\n", encoding="utf-8")
    made = assemble(tmp_path, log=False)
    made.engine.close()
    on = {row.name for row in made.plugins if row.kind == "builtin" and row.state == "loaded"}
    listed = rows(read("builtins/index.md"), "Builtin")
    assert {re.match(r"\[([\w-]+)\]", row[0])[1] for row in listed if not row[2].startswith("when")} == on


@pytest.mark.parametrize("name", builtins())
def test_a_builtins_page_lists_its_options_with_their_defaults(name):
    config = builtins()[name]
    listed = rows(section(read(f"builtins/{name}.md"), "Options"), "Option")
    expected = {field: str(getattr(config, field)) for field in config.__annotations__}
    assert {names(row[0])[0]: row[2].strip("`") for row in listed} == expected


# -- what hosts and authors use ------------------------------------------------------------------------


def parameters(function, *without: str) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self", *without}


def test_the_options_of_engines_and_sessions_are_listed():
    text = read("embedding.md")
    listed = rows(section(text, "Engine"), "Option")
    assert {name for row in listed for name in names(row[0])} == parameters(hookturn.Engine.__init__)
    listed = rows(section(text, "Session"), "Option")
    taken = parameters(hookturn.Session.__init__, "engine", "attached")
    assert {name for row in listed for name in names(row[0])} == taken


def test_what_an_outcome_has_is_listed():
    has = {name for name in vars(hookturn.Outcome) if not name.startswith("_")} | {"event"}
    listed = rows(section(read("embedding.md"), "The Outcome"), "Attribute")
    assert {name.partition("(")[0] for row in listed for name in names(row[0])} == has


def test_the_parameters_of_hookspec_and_tool_are_listed():
    listed = rows(section(read("own-timings.md"), "The spec"), "Parameter")
    assert {names(row[0])[0] for row in listed} == parameters(hookturn.hookspec)
    listed = rows(read("tools.md"), "Parameter of `Tool`")
    assert {names(row[0])[0] for row in listed} == set(hookturn.Tool._fields)


def test_the_tool_kinds_are_listed():
    from hookturn.spec.tools import KINDS

    assert tuple(names(row[0])[0] for row in rows(read("tools.md"), "Kind")) == KINDS


@pytest.mark.parametrize("name", hookturn.testing.__all__)
def test_the_test_kit_is_documented(name):
    known = {"EngineFactory": "hookturn_engine", "SessionFactory": "hookturn_session"}
    assert re.search(rf"\b{known.get(name, name)}\b", read("testing.md"))


@pytest.mark.parametrize("name", sorted({*hookturn.__all__} - {"__version__"}))
def test_each_public_name_is_mentioned(name):
    assert any(re.search(rf"\b{name}\b", page.read_text(encoding="utf-8")) for page in DOCS.rglob("*.md"))


# -- dependencies -------------------------------------------------------------------------------------


def test_each_dependency_is_justified():
    import sys
    from importlib import import_module

    read_toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads
    project = read_toml((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {re.match(r"[\w-]+", item)[0].lower() for item in project["dependencies"]}
    listed = rows(read("dependencies.md"), "Package")
    assert {name for row in listed for name in re.findall(r"\[([\w-]+)\]", row[0])} == needed
    extras = rows(read("dependencies.md"), "Extra")
    assert {names(row[0])[0] for row in extras} == set(project.get("optional-dependencies", {}))


def test_the_composition_profiles_and_knobs_are_listed():
    from hookturn.engine.composition import KNOBS, Composition

    text = read("composition.md")
    assert [names(row[0])[0] for row in rows(text, "Profile")] == list(KNOBS)
    listed = {names(row[0])[0]: row for row in rows(text, "Parameter")}
    assert set(listed) == parameters(Composition.__init__)
    for profile, knobs in KNOBS.items():
        for knob, values in knobs.items():
            assert names(listed[knob][1]) == list(values)
            assert f"`{profile}` only" in listed[knob][3]


# -- changes ------------------------------------------------------------------------------------------


def test_every_command_and_builtin_is_in_the_changes():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    builtins = pages("builtins")
    wanted = {f"`{name}`" for name in commands()} | builtins
    assert {name for name in wanted if name not in text} == set()
