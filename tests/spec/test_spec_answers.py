"""Answers: checked when they are made, and the same over the wire."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import (
    Allow,
    Answer,
    AnswerError,
    Ask,
    Block,
    Continue,
    Deny,
    Inject,
    Recover,
    Reply,
    Rewrite,
    SetEnv,
    Warn,
)
from hookturn.spec.answers import from_json

words = st.text(min_size=1).filter(str.strip)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
env = st.dictionaries(
    st.text(min_size=1).filter(lambda name: "=" not in name and "\0" not in name),
    st.text().filter(lambda value: "\0" not in value),
)
answers = st.one_of(
    st.builds(Allow, st.text()),
    st.builds(Ask, words),
    st.builds(Deny, words, st.text(), st.text()),
    st.builds(Block, words),
    st.builds(Reply, values),
    st.builds(Rewrite, values),
    st.builds(lambda fields: Rewrite(**fields), st.dictionaries(st.text(min_size=1), values, min_size=1)),
    st.builds(Inject, st.text()),
    st.builds(Warn, st.text()),
    st.builds(Continue, words),
    st.builds(SetEnv, env),
    st.builds(
        lambda strategy, config: Recover(strategy, **config),
        st.sampled_from(
            ["retry", "compact", "truncate", "summarize", "fallback_model", "remind_and_retry", "abort"]
        ),
        st.dictionaries(st.text().filter(lambda key: key not in ("self", "strategy")), values),
    ),
)


@given(answers)
def test_the_wire_gives_the_same_answer_back(answer):
    data = json.loads(json.dumps(answer.to_json(), ensure_ascii=True, allow_nan=False))
    [again] = from_json(data)
    assert type(again) is type(answer)
    assert again == answer
    assert again.to_json() == answer.to_json()


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        (Deny("no"), {"deny": "no"}),
        (Deny("no", advice="try", code="c"), {"deny": "no", "advice": "try", "code": "c"}),
        (Allow(), {"allow": ""}),
        (Ask("sure?"), {"ask": "sure?"}),
        (Block("stop"), {"block": "stop"}),
        (Reply({"a": 1}), {"reply": {"a": 1}}),
        (Reply(None), {"reply": None}),
        (Rewrite("x"), {"rewrite": {"value": "x"}}),
        (Rewrite(None), {"rewrite": {"value": None}}),
        (Rewrite(command="ls"), {"rewrite": {"command": "ls"}}),
        (Inject("i"), {"inject": "i"}),
        (Warn("w"), {"warn": "w"}),
        (Continue("c"), {"continue": "c"}),
        (SetEnv({"A": "b"}), {"set_env": {"A": "b"}}),
        (Recover("retry"), {"recover": "retry"}),
        (Recover("retry", attempts=3), {"recover": "retry", "config": {"attempts": 3}}),
    ],
)
def test_the_wire_form(answer, form):
    assert answer.to_json() == form
    assert from_json(form) == [answer]


def test_several_keys_are_several_answers_in_their_order():
    assert from_json({"rewrite": {"command": "ls"}, "inject": "a", "warn": ["b", "c"]}) == [
        Rewrite(command="ls"),
        Inject("a"),
        Warn("b"),
        Warn("c"),
    ]


@pytest.mark.parametrize("data", [None, {}, {"deny": None}, {"allow": False}, {"warn": []}])
def test_no_opinion(data):
    assert from_json(data) == []


@pytest.mark.parametrize("data", [{"allow": True}, {"allow": ""}])
def test_allow_needs_no_reason(data):
    assert from_json(data) == [Allow()]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "one JSON object, got an array"),
        ("deny", "one JSON object, got a string"),
        (True, "one JSON object, got a boolean"),
        ({"deney": "x"}, r"unknown key 'deney'.*did you mean 'deny'"),
        ({"Deny": "x"}, "unknown key 'Deny'"),
        ({1: "x"}, "unknown key 1"),
        ({"deny": 5}, "Deny: reason must be a string, got a number"),
        ({"deny": True}, "Deny: reason must be a string"),
        ({"deny": ""}, "Deny needs a reason"),
        ({"deny": " \n"}, "Deny needs a reason"),
        ({"deny": "x", "advice": 5}, "Deny: advice must be a string"),
        ({"deny": "x", "code": 5}, "Deny: code must be a string"),
        ({"advice": "x"}, "'advice' and 'code' belong to 'deny'"),
        ({"deny": None, "advice": "x"}, "'advice' and 'code' belong to 'deny'"),
        ({"config": {}}, "'config' belongs to 'recover'"),
        ({"recover": "retry", "config": 5}, "'config' takes an object"),
        ({"recover": "retry", "config": {"strategy": "x"}}, "'config'"),
        ({"recover": "restart"}, "unknown strategy 'restart'"),
        ({"recover": ["retry"]}, "unknown strategy"),
        ({"rewrite": "x"}, "'rewrite' takes an object"),
        ({"rewrite": {}}, "'rewrite' takes an object"),
        ({"ask": True}, "Ask: reason must be a string"),
        ({"block": ""}, "Block needs a reason"),
        ({"continue": 5}, "Continue: reason must be a string"),
        ({"inject": 5}, "Inject: text must be a string"),
        ({"inject": ["a", 5]}, "Inject: text must be a string"),
        ({"warn": {}}, "Warn: text must be a string"),
        ({"set_env": []}, "SetEnv: variables must be an object, got an array"),
        ({"set_env": {"A": 1}}, "SetEnv: the value of 'A'"),
        ({"set_env": {"A=B": "x"}}, "'A=B' is no name"),
        ({"set_env": {"": "x"}}, "'' is no name"),
        ({"set_env": {"A\0": "x"}}, "is no name"),
        ({"set_env": {"A": "\0"}}, "without NUL"),
        ({"allow": 5}, "Allow: reason must be a string"),
    ],
)
def test_bad_wire_answers_are_named(data, words):
    with pytest.raises(AnswerError, match=words):
        from_json(data)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "allow", "ask", "deny", "block", "reply", "rewrite", "inject", "warn", "continue", "set_env",
                "recover", "advice", "code", "config",
            ]
        ),
        values,
    )
)  # fmt: skip
def test_any_wire_answer_is_read_or_refused(data):
    try:
        made = from_json(data)
    except AnswerError as error:
        assert str(error)
    else:
        assert all(isinstance(answer, Answer) for answer in made)


def test_field_names_that_clash_with_python_are_fields():
    assert from_json({"rewrite": {"self": 1, "value": 2}}) == [Rewrite(2, **{"self": 1})]
    assert Rewrite(**{"self": 1}).fields == {"self": 1}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Deny(""), "Deny needs a reason"),
        (lambda: Deny(None), "Deny: reason must be a str"),
        (lambda: Ask("  "), "Ask needs a reason"),
        (lambda: Block(5), "Block: reason"),
        (lambda: Continue(""), "Continue needs a reason"),
        (lambda: Inject(None), "Inject: text"),
        (lambda: Warn(b"x"), "Warn: text"),
        (lambda: Rewrite(), "Rewrite needs a value"),
        (lambda: Rewrite(1, 2), "Rewrite takes one value"),
        (lambda: Recover("nope"), "unknown strategy 'nope'"),
        (lambda: SetEnv([("A", "b")]), "SetEnv: variables must be a dict, got list"),
        (lambda: Allow(5), "reason must be"),
    ],
)
def test_answers_are_checked_when_made(make, words):
    with pytest.raises(AnswerError, match=words):
        make()


def test_answers_are_frozen_and_compare_by_content():
    deny = Deny("no", advice="x")
    assert deny == Deny("no", "x")
    assert deny != Deny("no")
    with pytest.raises(AttributeError):
        deny.reason = "yes"
    reply = Reply({"a": [1]})
    with pytest.raises(TypeError):
        reply.value["a"].append(2)
    rewrite = Rewrite({"a": [1]}, command="x")
    with pytest.raises(TypeError):
        rewrite.value["a"].append(2)
    assert Rewrite(1) != Rewrite(value=1) or Rewrite(1).has_value
    assert Rewrite(None) != Rewrite(x=1)


def test_reprs_can_be_read():
    assert repr(Deny("no")) == "Deny(reason='no', advice='', code='')"
    assert repr(Rewrite("x", command="ls")) == "Rewrite('x', command='ls')"


def test_own_answers():
    class Score(Answer):
        merge = "first"
        points: float
        why: str = ""

    assert Score(0.5).points == 0.5
    assert Score(points=1, why="x") == Score(1, "x")
    assert Score(0.5).to_json() == {"score": {"points": 0.5, "why": ""}}
    with pytest.raises(AnswerError, match="points"):
        Score()
    with pytest.raises(AnswerError, match="points must be"):
        Score("high")
    with pytest.raises(AnswerError, match="merge must be 'all', 'first' or 'last', got 'sum'"):

        class Sum(Answer):
            merge = "sum"
