"""The JSON wire of configured hooks: what they read, and what their output means."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import Allow, Block, Deny, Inject, Rewrite, Warn, events
from hookturn.redact import Secret
from hookturn.runners import wire
from hookturn.runners.wire import NoAnswer, read_answer, refusal, request
from hookturn.spec.errors import AnswerError
from hookturn.spec.timings import TIMINGS

HARD = 'ok \U0001f680\ud83d\x00\u2028\ufeff\\"表\r\n\x1b'


def test_the_request():
    event = events.PreToolExecution(tool="bash", args={"command": "ls"}, session_id="s1")
    data = json.loads(request(event))
    assert data == {"schema": 1, "timing": "pre_tool_execution", "event": event.to_json()}
    assert json.loads(request(event, {"a": 1}))["config"] == {"a": 1}


@given(st.text(st.characters()) | st.just(HARD))  # every character, lone surrogates too
def test_the_request_is_one_valid_utf_8_document_whatever_the_text_holds(text):
    data = request(events.PreToolExecution(tool="bash", args={"command": text}))
    assert json.loads(data.decode("utf-8"))["event"]["args"]["command"] == text


@pytest.mark.parametrize("output", [b"", b" \r\n\t", b"\xef\xbb\xbf", b"{}", b"null", b"\xef\xbb\xbf {}\n"])
def test_no_opinion(output):
    assert read_answer(output) == []


@pytest.mark.parametrize("output", ['{"deny": "表"}', '\ufeff{"deny": "表"}', ' \n{"deny":"\\u8868"}\r\n'])
def test_an_answer_with_or_without_a_byte_order_mark(output):
    assert read_answer(output.encode()) == [Deny("表")]


def test_a_byte_order_mark_in_a_string_stays():
    assert read_answer('\ufeff{"inject": "\ufeffx"}'.encode()) == [Inject("\ufeffx")]


def test_several_answers():
    output = b'{"rewrite": {"command": "ls -l"}, "warn": ["a", "b"], "allow": true}'
    assert read_answer(output) == [Rewrite(command="ls -l"), Warn("a"), Warn("b"), Allow()]


NOISE = {
    b'Welcome!\n{"deny": "x"}': "JSON found after 9 bytes of text ('Welcome!\\n'); print the JSON alone",
    "表{}".encode(): "JSON found after 3 bytes of text",
    b"\xef\xbb\xbfhi {}": "JSON found after 6 bytes of text",
    b'{not json} {"deny": "x"}': "JSON found after 11 bytes of text",
    b'{"deny": "x"}\ndone.': "more text ('done.') follows its answer after 14 bytes",
    b'{"warn": "x"}{"deny": "y"}': "a second JSON document follows its answer after 13 bytes",
    b'{"warn": "x"}\n\n {"deny": "y"}': "a second JSON document follows its answer after 16 bytes",
    b"{} {}": "a second JSON document follows its answer after 3 bytes",
    b"checked 3 files": "its output is no JSON ('checked 3 files'); print one JSON object, or nothing",
    b'{"deny": "x"': "its answer is not valid JSON: Expecting ',' delimiter at byte 12",
    b"{'deny': 'x'}": "its answer is not valid JSON: Expecting property name enclosed in double quotes at byte 1",
    b'{"deny": "x", "deny": null}': "the key 'deny' stands twice in an object",
    b'{"rewrite": {"value": NaN}}': "NaN is no JSON",
    b'{"deny": "\xff"}': "its output is not UTF-8: byte 10 is 0xff",
    b"\xff\xfe{\x00}\x00": "its output is not UTF-8: byte 0 is 0xff",
    b'{"rewrite": {"value": ' + b"9" * 10_000 + b"}}": "its answer is not valid JSON: Exceeds the limit",
    b'{"rewrite": ' + b"[" * 100_000: "its answer is not valid JSON",
    b"{" * 100_000: "its answer is not valid JSON",
}


@pytest.mark.parametrize("output", NOISE, ids=range(len(NOISE)))
def test_noise_is_no_answer_and_told_with_its_place(output):
    with pytest.raises(NoAnswer) as error:
        read_answer(output)
    assert NOISE[output] in str(error.value)


def test_an_echoed_input():
    event = events.PreToolExecution(tool="bash", args={"command": "ls"})
    with pytest.raises(NoAnswer, match="printed its own input back"):
        read_answer(request(event))


def test_too_much():
    with pytest.raises(NoAnswer, match="printed more than the 4 bytes"):
        read_answer(b'{"a"', truncated=True)


@pytest.mark.parametrize(
    ("output", "wrong"),
    [
        (b'{"dney": "x"}', "unknown key 'dney' in the answer (did you mean 'deny'?)"),
        (b'["deny"]', "an answer is one JSON object, got an array"),
        (b'"deny"', "an answer is one JSON object, got a string"),
        (b'{"deny": ""}', "Deny needs a reason with words in it"),
    ],
)
def test_bad_answers(output, wrong):
    with pytest.raises(AnswerError) as error:
        read_answer(output)
    assert wrong in str(error.value)


@given(st.binary(max_size=60) | st.text('{}[]":,deny x\n\ufeff', max_size=40).map(str.encode))
def test_any_output_is_answers_or_a_told_error(output):
    try:
        answers = read_answer(output)
    except AnswerError as error:
        assert str(error)
    else:
        assert isinstance(answers, list)


def test_secrets_in_excerpts():
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    with pytest.raises(NoAnswer) as error:
        read_answer(f"token {token}".encode())
    assert token not in str(error.value)


@pytest.mark.parametrize("name", TIMINGS)
def test_a_refusal_is_a_deny_or_a_block_where_only_that_is_allowed(name):
    timing = TIMINGS[name]
    event = events.Event(type="x", accepts=["Deny"]) if name == "on_event" else None
    if name == "on_event" or Deny in timing.answers:
        assert refusal(timing, event, "no") == Deny("no")
    elif Block in timing.answers:
        assert refusal(timing, event, "no") == Block("no")
    else:
        with pytest.raises(NoAnswer, match=f"nothing can be refused at {name}"):
            refusal(timing, event, "no")


def test_a_refusal_of_a_host_event_is_what_it_accepts():
    timing = TIMINGS["on_event"]
    assert refusal(timing, events.Event(type="x", accepts=["Block", "Inject"]), "no") == Block("no")
    with pytest.raises(NoAnswer):
        refusal(timing, events.Event(type="x", accepts=["Inject"]), "no")


def test_a_long_refusal_is_cut():
    answer = refusal(TIMINGS["pre_tool_execution"], None, "x" * 1_000_000)
    assert len(answer.reason) < wire.LONGEST_REASON + 10


def test_secrets_are_revealed_to_the_hook_and_taken_out_of_its_words():
    config = {
        "token": Secret("s3cret-word", "token"),
        "all": [{"x": Secret("other-word")}],
        "short": Secret("a"),
    }
    assert wire.reveal(config) == {"token": "s3cret-word", "all": [{"x": "other-word"}], "short": "a"}
    hidden = wire.Hidden(config)
    answers = hidden.in_words(
        [Deny("no s3cret-word", advice="other-word"), Rewrite(command="use s3cret-word"), Allow()]
    )
    assert "s3cret-word" not in answers[0].reason
    assert "[REDACTED:token:" in answers[0].reason
    assert "other-word" not in answers[0].advice
    assert answers[1:] == [Rewrite(command="use s3cret-word"), Allow()]
    assert hidden.hide("an a") == "an a"


def test_an_empty_secret_hides_nothing():
    assert wire.Hidden({"token": Secret("")}).hide("words") == "words"
