"""The builtin functions: R8 of role.yaml's facts, row by row, and texts in the system prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import Engine
from hookturn_builtins.functions import Config, Functions, plugin
from hookturn_builtins.functions.calls import parse


def engine_of(**settings) -> Engine:
    config = Config()
    for name, value in settings.items():
        setattr(config, name, value)
    config.validate()
    engine = Engine()
    engine.register(plugin(config), "functions", layer="builtin", config=config)
    return engine


def body(text: str, **more) -> dict:
    return {"body": text, **more}


@pytest.fixture
def say():
    """Say something in a session of an engine; returns (the prompt, the next system prompt's parts, warnings)."""
    sessions = {}

    def talk(engine: Engine, text: str):
        session = sessions.setdefault(id(engine), engine.session())
        if not sessions.get((id(engine), "begun")):
            session.start()
            sessions[(id(engine), "begun")] = True
        prompt = session.submit(text)
        with session.turn() as turn:
            return prompt.text, turn.system_prompt(["base"])[1:], session

    return talk


# -- the parser ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "calls", "rest"),
    [
        ("|plan| build it", [("plan", {})], "build it"),
        ("|plan|review| x", [("plan", {}), ("review", {})], "x"),
        ("|plan||review| x", [("plan", {}), ("review", {})], "x"),
        ("hello |plan| x", [], "hello |plan| x"),
        ("|| x", [], "|| x"),
        ("|Plan| x", [], "|Plan| x"),
        ("|1plan| x", [], "|1plan| x"),
        ("|plan|text", [("plan", {})], "text"),
        ("|plan|", [("plan", {})], ""),
        ("|review:security,strict| go", [("review", {"_0": "security", "_1": "strict"})], "go"),
        ("|review: security , ,strict| go", [("review", {"_0": "security", "_1": "strict"})], "go"),
        ('|review focus="all areas"| go', [("review", {"focus": "all areas"})], "go"),
        ("|review focus=all level=2| go", [("review", {"focus": "all", "level": "2"})], "go"),
        ("|plan|review:security| go", [("plan", {}), ("review", {"_0": "security"})], "go"),
        ("|re_view| x", [], "|re_view| x"),
        (" |plan| x", [], " |plan| x"),
        ("first\n|plan| x", [], "first\n|plan| x"),
        ("|plan", [], "|plan"),
        ("| a | b |\n|---|---|", [], "| a | b |\n|---|---|"),
        ("|plan|\n\n  do", [("plan", {})], "do"),
        ("", [], ""),
    ],
)
def test_r8_the_parser(text, calls, rest):
    found, left = parse(text)
    assert ([(call.name, call.args) for call in found], left) == (calls, rest)


@given(st.text(alphabet='|ab-:=," \n_A1', max_size=40))
def test_r8_what_is_left_is_the_end_of_the_message(text):
    calls, rest = parse(text)
    assert text.endswith(rest)
    assert bool(calls) or rest == text
    assert all(call.name and call.name[0].isalpha() for call in calls)


# -- calling ------------------------------------------------------------------------------------------


def test_a_called_function_enters_every_system_prompt_of_the_session(say):
    engine = engine_of(functions={"plan": body("Plan first.")})
    assert say(engine, "hello")[:2] == ("hello", [])
    assert say(engine, "|plan| build it")[:2] == ("build it", ["Plan first."])
    assert say(engine, "go on")[:2] == ("go on", ["Plan first."])


def test_sessions_are_kept_apart():
    engine = engine_of(functions={"plan": body("Plan first.")})
    with engine.session() as one, engine.session() as two:
        one.submit("|plan| x")
        with two.turn() as turn:
            assert turn.system_prompt([]) == []


def test_unknown_names_are_dropped_but_taken_off(say):
    engine = engine_of(functions={"plan": body("Plan.")}, known=["plan"])
    assert say(engine, "|other|plan| x")[:2] == ("x", ["Plan."])


def test_without_a_list_all_names_are_accepted_and_a_missing_text_is_told():
    engine = engine_of()
    with engine.session() as session:
        prompt = session.submit("|other| x")
    assert prompt.text == "x"
    assert prompt.warnings == [
        "The function other was called, but its text is not here, so it changes nothing."
    ]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("|review|", "Look at correctness, normal."),
        ("|review:security|", "Look at security, normal."),
        ("|review:security,strict|", "Look at security, strict."),
        ("|review severity=strict|", "Look at correctness, strict."),
        ('|review focus="all {severity}"|', "Look at all {severity}, normal."),
    ],
)
def test_parameters_are_filled_by_place_by_name_and_by_default(say, call, text):
    review = body("Look at {focus}, {severity}.", params={"focus": "correctness", "severity": "normal"})
    assert say(engine_of(functions={"review": review}), f"{call} x")[1] == [text]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (body("Keep {this}."), "Keep {this}."),
        (body("Keep {this} and {that}.", params={"that": "T"}), "Keep {this} and T."),
        (body("Keep {this}.", params={"this": ""}), "Keep {this}."),
    ],
)
def test_what_has_no_value_stays_as_it_is(say, function, text):
    assert say(engine_of(functions={"f": function}), "|f| x")[1] == [text]


def test_texts_are_ordered_by_priority_then_by_call(say):
    functions = {
        "a": body("A"),
        "b": body("B", priority=10),
        "c": body("C"),
        "d": body("D", priority=90),
    }
    assert say(engine_of(functions=functions), "|d|c|a|b| x")[1] == ["B", "C", "A", "D"]


def test_a_function_waits_for_those_that_it_requires():
    functions = {"plan": body("Plan."), "execute": body("Execute.", requires=["plan"])}
    engine = engine_of(functions=functions)
    with engine.session() as session:
        prompt = session.submit("|execute| x")
        assert prompt.warnings == ["The function execute waits for plan: call it, too."]
        with session.turn() as turn:
            assert turn.system_prompt([]) == []
        session.submit("|plan| x")
        with session.turn() as turn:
            assert turn.system_prompt([]) == ["Execute.", "Plan."]


# -- auto_activate, locked ----------------------------------------------------------------------------


def test_r8_the_first_message_activates_and_later_ones_do_not_again(say):
    engine = engine_of(functions={"triage": body("Triage.")}, auto_activate=["triage"])
    text, parts, session = say(engine, "hello")
    assert (text, parts) == ("hello", ["Triage."])
    session.event("function.deactivate", {"function": "triage"})
    assert say(engine, "second")[1] == []


@pytest.mark.parametrize(("locked", "parts"), [(True, ["Triage."]), (False, [])])
def test_r8_a_locked_function_stays(say, locked, parts):
    engine = engine_of(functions={"triage": body("Triage.")}, auto_activate=["triage"], locked=locked)
    _, _, session = say(engine, "hello")
    session.event("function.deactivate", {"function": "triage"})
    assert say(engine, "second")[1] == parts


def test_a_called_function_can_be_ended_and_called_by_the_host(say):
    engine = engine_of(functions={"plan": body("Plan.")})
    _, _, session = say(engine, "|plan| x")
    session.event("function.deactivate", {"function": "plan"})
    assert say(engine, "y")[1] == []
    session.event("function.activate", {"function": "plan"})
    assert say(engine, "z")[1] == ["Plan."]


def test_an_empty_first_message_counts(say):
    assert say(engine_of(functions={"t": body("T")}, auto_activate=["t"]), "")[1] == ["T"]


def test_two_processes_share_a_sessions_functions(tmp_path):
    for text, parts in (("|plan| x", ["Plan."]), ("y", ["Plan."])):
        config = Config()
        config.functions = {"plan": body("Plan.")}
        with Engine(state_dir=tmp_path) as engine:
            engine.register(plugin(config), "functions", config=config)
            session = engine.attach("s1")
            session.submit(text)
            with session.turn() as turn:
                assert turn.system_prompt([]) == parts


@pytest.mark.parametrize(
    ("functions", "why"),
    [
        ({"f": {}}, "the function f needs a body"),
        ({"f": body(" ")}, "the function f needs a body"),
        ({"f": body("x", params=[1])}, "params of the function f is of the wrong kind"),
        ({"f": body("x", requires="a")}, "requires of the function f is of the wrong kind"),
    ],
)
def test_wrong_settings_are_refused(functions, why):
    config = Config()
    config.functions = functions
    with pytest.raises(ValueError, match=why):
        config.validate()


def test_it_is_configured_in_hookturn_yaml(tmp_path):
    (tmp_path / "hookturn.yaml").write_text(
        "plugins:\n  functions:\n    functions:\n      plan: {body: Plan first.}\n    auto_activate: [plan]\n"
    )
    from hookturn.project.assemble import Survey, assemble

    Survey(tmp_path, guards=True).trust_all()
    assembled = assemble(tmp_path, log=False, builtins=False)
    assert assembled.problems == []
    with assembled.engine as engine, engine.session() as session:
        session.submit("x")
        with session.turn() as turn:
            assert turn.system_prompt([]) == ["Plan first."]


def test_the_plugin_is_made_by_its_entry_point():
    assert isinstance(plugin(Config()), Functions)
