"""Matchers and ``if`` rules of Claude Code's hooks: the table of its rules, JavaScript's expressions, and dead guards."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import events
from hookturn.agents.claude_code.conditions import BadRule, Condition
from hookturn.agents.claude_code.javascript_regex import BadPattern, NoTranslation, compile_javascript
from hookturn.agents.claude_code.matcher import Matcher, doubts, wrong_pattern
from hookturn.agents.claude_code.tools import TOOLS

RULES = json.loads(
    (Path(__file__).parents[1] / "data" / "claude_code_rules.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("row", RULES["matchers"], ids=lambda row: f"{row.get('matcher')!r}-{row['name']}")
def test_matchers_follow_the_table(row):
    assert Matcher(row.get("matcher", "")).fits(row["name"]) is row["fires"], row["why"]


def test_some_events_divide_names_by_bars_only():
    assert Matcher("rate_limit,overloaded", bars_only=True).fits("rate_limit,overloaded")
    assert not Matcher("rate_limit,overloaded", bars_only=True).fits("rate_limit")
    assert Matcher("a.txt|b[1].txt", files=True).fits("b[1].txt")
    assert not Matcher("a.txt", files=True).fits("aXtxt")


# (expression, text, found), by ECMA-262 without flags.
FOUND = [
    ("(?<x>Ba)sh", "Bash", True),
    (r"(?<x>a)\k<x>", "aa", True),
    (r"(?<x>a)\k<x>", "ab", False),
    (r"\k<x>", "k<x>", True),
    (r"(a)?b\1c", "bc", True),
    (r"\1(a)", "a", True),
    (r"(a)\1", "aa", True),
    (r"(a)\1", "ab", False),
    (r"\2(a)", "\x02a", True),
    (r"\8", "8", True),
    ("Bash$", "Bash\n", False),
    ("^Bash$", "Bash", True),
    ("B.sh", "B\nsh", False),
    ("B.sh", "B\u2028sh", False),
    ("B.sh", "B\x0bsh", True),
    ("B[^]sh", "B\nsh", True),
    ("B[]sh", "Bsh", False),
    (r"\d", "٣", False),
    (r"\d", "3", True),
    (r"\w", "é", False),
    (r"\W", "é", True),
    (r"\s", "\ufeff", True),
    (r"\s", "\x1c", False),
    (r"\S", "\x1c", True),
    (r"[\s\S]", "\n", True),
    (r"[^\W]", "é", False),
    (r"\bé", "aé", True),
    (r"\A", "A", True),
    (r"\ABash", "Bash", False),
    (r"Bash\Z", "Bash", False),
    (r"\a", "a", True),
    (r"\p{L}", "p{L}", True),
    (r"\u0042ash", "Bash", True),
    (r"\x42ash", "Bash", True),
    (r"\x4", "x4", True),
    (r"\u{2}", "uu", True),
    (r"\cA", "\x01", True),
    (r"\c1", r"\c1", True),
    (r"\0", "\0", True),
    (r"\101", "A", True),
    ("a{,2}", "a{,2}", True),
    ("a{,2}", "aa", False),
    ("x{2}", "xx", True),
    ("x{2,}?y", "xxxy", True),
    ("{", "{", True),
    ("}", "}", True),
    ("]", "]", True),
    ("[a-c]", "b", True),
    ("[a-]", "-", True),
    (r"[\d-x]", "-", True),
    (r"[a\-c]", "b", False),
    (r"[a\-c]", "-", True),
    (r"[\b]", "\b", True),
    ("[[a]", "[", True),
    ("[a--]", "a", "refused"),
    ("[&&~~||]", "~", True),
    ("(?:Edit|Write)", "Write", True),
    ("(?=Ba)Bash", "Bash", True),
    ("(?=Ba)*Bash", "Bash", True),
    ("(?!Ba)Bash", "Bash", False),
    ("(?<=__)x", "a__x", True),
    ("(?<!__)x", "a__x", False),
    ("a||b", "zzz", True),
    ("我", "我的工具", True),
    ("Bash(git *)", "Bash", False),
    ("(?i)bash", "", "refused"),
    ("(?P<x>a)", "", "refused"),
    ("(?#note)a", "", "refused"),
    ("(?>a)", "", "refused"),
    ("(?<x>a)(?<x>b)", "", "refused"),
    ("*", "", "refused"),
    ("+a", "", "refused"),
    ("a**", "", "refused"),
    ("a*+", "", "refused"),
    ("a{2}{3}", "", "refused"),
    ("a{3,2}", "", "refused"),
    ("^*", "", "refused"),
    (r"\b+", "", "refused"),
    ("(?<=a)*", "", "refused"),
    ("(", "", "refused"),
    (")", "", "refused"),
    ("[", "", "refused"),
    ("[z-a]", "", "refused"),
    ("\\", "", "refused"),
    ("(?", "", "refused"),
    ("(|*)", "", "refused"),
    (r"(?<x>a)\k<y>", "", "refused"),
]


@pytest.mark.parametrize(("pattern", "text", "found"), FOUND)
def test_expressions_are_javascripts(pattern, text, found):
    if found == "refused":
        with pytest.raises(BadPattern):
            compile_javascript(pattern)
    else:
        assert (compile_javascript(pattern).search(text) is not None) is found


def javascript(rows):
    """What Node finds."""
    script = (
        "const rows = JSON.parse(require('fs').readFileSync(0));"
        "console.log(JSON.stringify(rows.map(([p, t]) => {"
        "  try { return new RegExp(p).test(t) } catch { return 'refused' } })))"
    )
    process = subprocess.run(
        ["node", "-e", script], input=json.dumps(rows), capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(process.stdout)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_table_is_right():
    found = javascript([row[:2] for row in FOUND])
    assert [(row, node) for row, node in zip(FOUND, found, strict=True) if row[2] != node] == []


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_random_expressions_mean_what_node_says():
    """Some thousand expressions, from the pieces in which the two languages differ."""
    from random import Random

    pieces = [
        "a", "b", "B", "1", "-", ".", "^", "$", "|", "*", "+", "?", "??", "{2}", "{,2}", "{1,", "}", "(", ")", "(?:",
        "(?=", "(?!", "(?<n>", r"\k<n>", r"\1", r"\2", "[", "]", "[^", "a-b", r"\d", r"\w", r"\s", r"\S", r"\b", r"\B",
        r"\-", r"\x61", r"\u0061", r"\cA", r"\0", r"\n", r"\A", r"\Z", " ", "_",
    ]  # fmt: skip
    texts = [
        "",
        "a",
        "ab",
        "aab",
        "B1",
        "-",
        "a\nb",
        "a{,2}",
        "}",
        "]",
        " ",
        "A",
        "Z",
        "b_b",
        "k<n>",
        "\x01",
        "\x02",
    ]
    random = Random(4)
    rows = []
    while len(rows) < 6000:
        pattern = "".join(random.choice(pieces) for _ in range(random.randint(1, 7)))
        rows.append([pattern, random.choice(texts)])
    wrong = []
    for (pattern, text), node in zip(rows, javascript(rows), strict=True):
        try:
            found = compile_javascript(pattern).search(text) is not None
        except BadPattern:
            found = "refused"
        except NoTranslation:
            continue
        if found != node:
            wrong.append((pattern, text, node, found))
    assert wrong == []


def test_what_python_cannot_do_is_told():
    with pytest.raises(NoTranslation, match="look-behind"):
        compile_javascript("(?<=a+)b")


@given(st.text(alphabet="ab(){}[]?*+|\\^$.-<>k1dDsSwWbBux&:=!P,_ é\n", max_size=12))
def test_any_text_is_translated_or_refused(pattern):
    try:
        compiled = compile_javascript(pattern)
    except (BadPattern, NoTranslation):
        return
    assert isinstance(compiled, re.Pattern)


@given(st.sampled_from(sorted(TOOLS)), st.sampled_from(sorted(TOOLS)))
def test_a_list_matches_exactly_its_names(one, other):
    matcher = Matcher(f"{one} | {other}")
    assert {name for name in TOOLS if matcher.fits(name)} == {one, other}


@pytest.mark.parametrize(
    ("text", "severity", "words"),
    [
        ("Bash(git push*)", "error", "permission rule"),
        ("Bash(*)", "refused", "permission rule"),
        ('tool == "Bash" || tool == "Edit"', "warning", "matches every tool"),
        ("mcp__", "error", "no tool's whole name"),
        ("mcp__github", "error", "mcp__github__.*"),
        ("Bash|mcp__a__", "error", "no tool's whole name"),
        ("mcp__github__*", "warning", "also catches servers"),
        ("bash", "warning", "did you mean 'Bash'? case counts"),
        ("Edti|Write", "warning", "did you mean 'Edit'"),
        (r"\ABash", "warning", "matches no tool"),
        ("^(bash|edit)$", "warning", "matches no tool"),
        ("Bash(*gh*)", "refused", "permission rule"),
        ("(?i)bash", "refused", "Case always counts"),
    ],
)
def test_guards_that_can_never_say_no_are_found(text, severity, words):
    if severity == "refused":
        with pytest.raises(BadPattern) as refused:
            Matcher(text)
        cause, remedy = wrong_pattern(text, refused.value)
    else:
        ((found, cause, remedy),) = doubts(text, tools=True)
        assert found == severity
    assert words in f"{cause} {remedy}"


@pytest.mark.parametrize(
    "text", ["", "*", "Bash", "Edit|Write", "Edit, Write", ".*", "mcp__.*", "mcp__a__b", "^Bash$"]
)
def test_good_matchers_are_left_alone(text):
    if text == ".*":
        assert "matches every tool" in doubts(text, tools=True)[0][1]
    else:
        assert doubts(text, tools=True) == []


def call(tool="Bash", **args):
    return events.PreToolExecution(tool=tool, args=args, cwd="/home/dev/project")


@pytest.mark.parametrize(
    "row", RULES["if_rules"], ids=lambda row: f"{row['rule']}-{row['tool']}-{row['input']}"
)
def test_if_rules_follow_the_table(row):
    assert Condition(row["rule"], "/home/dev/project").fits(call(row["tool"], **row["input"])) is row["fires"]


@pytest.mark.parametrize("text", ["", "Bash(", "Bash)", "Bash(git *) || Edit", "a b"])
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(BadRule):
        Condition(text)


def test_hostile_rules_and_lines_take_no_time():
    rule = Condition("Bash(" + "a*" * 30 + "b)")
    assert not rule.fits(call(command="a" * 50_000))
