"""Our entries in agents' tables: put in once, replaced in place, taken out whole; everything else stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn.agents.installing import CannotInstall, calls_bridge, grouped, is_ours, listed, named

OURS = {"type": "command", "command": "/v/bin/python -I -S /v/hookturn/serve/client.py bridge x --timeout 60"}
OLD = {"type": "command", "command": "hookturn bridge x"}
FOREIGN = {"type": "command", "command": "./guard.sh"}


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("hookturn bridge claude-code", True),
        ("/a b/bin/hookturn bridge x", True),
        ("'/a b/bin/hookturn' bridge x", True),
        ("/an old place/python -I -S /v/hookturn/serve/client.py bridge x", True),
        ("python -I -S '/a b/hookturn/serve/client.py' bridge x", True),
        ("python -m hookturn.cli bridge x", True),
        ("A=1 uv run hookturn bridge x", True),
        ("cd /x && hookturn bridge x", True),
        (r"C:\v\hookturn.exe bridge x", True),
        ("echo hookturn", False),
        ("hookturn-bridge x", False),
        ("./hookturn_bridge.sh", False),
        ("myhookturn bridge x", False),
        ("hookturn fire on_event", False),
    ],
)
def test_what_calls_us(command, ours):
    assert calls_bridge(command) is ours
    assert is_ours({"command": command}) is ours


@pytest.mark.parametrize(
    "command",
    [
        "echo see hookturn bridge x",
        'pgrep -f "hookturn bridge x" || true',
        "x; grep hookturn bridge x",
    ],
)
def test_what_only_speaks_of_us(command):
    assert calls_bridge(command)
    assert not is_ours({"command": command})


def test_an_address_of_ours():
    token = {"type": "http", "headers": {"Authorization": "Bearer x"}}
    assert is_ours({**token, "url": "http://127.0.0.1:4711/hooks/claude-code"})
    assert not is_ours({**token, "url": "http://127.0.0.1:4711/other"})
    assert not is_ours({**token, "url": "https://hooks.example/hooks/claude-code"})
    assert not is_ours({"type": "http", "url": "http://127.0.0.1:4711/hooks/claude-code"})
    assert not is_ours("hookturn bridge x")


def test_the_first_install_and_back():
    text = grouped("{}\n", {"Stop": OURS}, "f")
    assert json.loads(text) == {"hooks": {"Stop": [{"matcher": "*", "hooks": [OURS]}]}}
    assert grouped(text, {"Stop": OURS}, "f") == text
    assert json.loads(grouped(text, {}, "f")) == {}


HANDLERS = st.lists(
    st.sampled_from([OURS, OLD, FOREIGN, "odd", {"type": "http", "url": "http://x/"}]), max_size=3
)
GROUPS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"matcher": st.just("Bash"), "hooks": HANDLERS}), st.just("odd"), st.just({})
    ),
    max_size=3,
)
EVENTS = st.sampled_from(["Stop", "PreToolUse", "Other"])


def foreign_of(hooks: dict) -> dict:
    """What is left of a table without our handlers, and without what held nothing but them."""
    left = {}
    for event, groups in hooks.items():
        kept = []
        for group in groups:
            if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
                kept.append(group)
                continue
            handlers = [handler for handler in group["hooks"] if not is_ours(handler)]
            if handlers or not group["hooks"]:
                kept.append({**group, "hooks": handlers})
        if kept or not groups:
            left[event] = kept
    return left


@given(
    st.dictionaries(EVENTS, GROUPS, max_size=3),
    st.sets(EVENTS),
    st.sampled_from([None, 2, "\t"]),
    st.text(max_size=5),
)
def test_grouped_tables(hooks, events, indent, other):
    data = {"model": other, "hooks": hooks}
    text = json.dumps(data, indent=indent)
    wanted = dict.fromkeys(events, OURS)
    new = grouped(text, wanted, "f")
    found = json.loads(new)
    assert grouped(new, wanted, "f") == new
    assert found["model"] == other
    table = found.get("hooks", {})
    ours = {
        event: [h for g in groups if isinstance(g, dict) for h in g.get("hooks", []) if is_ours(h)]
        for event, groups in table.items()
    }
    assert {event: found for event, found in ours.items() if found} == {event: [OURS] for event in events}
    assert {e: g for e, g in foreign_of(table).items() if g} == {
        e: g for e, g in foreign_of(hooks).items() if g
    }
    gone = json.loads(grouped(new, {}, "f"))
    assert {e: g for e, g in gone.get("hooks", {}).items() if g} == {
        e: g for e, g in foreign_of(hooks).items() if g
    }


@given(
    st.dictionaries(EVENTS, st.lists(st.sampled_from([OURS, OLD, FOREIGN, 5]), max_size=3), max_size=3),
    st.sets(EVENTS),
)
def test_flat_tables(hooks, events):
    wanted = dict.fromkeys(events, OURS)
    new = listed(json.dumps({"hooks": hooks}, indent=1), wanted, "f")
    table = json.loads(new).get("hooks", {})
    assert listed(new, wanted, "f") == new
    assert {event for event, found in table.items() if OURS in found} == events
    for event, found in table.items():
        assert [item for item in found if not is_ours(item)] == [
            item for item in hooks.get(event, []) if not is_ours(item)
        ]
        assert sum(map(is_ours, found)) == (event in events)


def test_named_tables():
    text = json.dumps({"hooks": {"mine": FOREIGN, "hookturn-old": OLD}})
    new = named(text, {"hookturn-Stop": OURS}, "f")
    assert json.loads(new) == {"hooks": {"mine": FOREIGN, "hookturn-Stop": OURS}}
    assert named(new, {"hookturn-Stop": OURS}, "f") == new
    assert json.loads(named(new, {}, "f")) == {"hooks": {"mine": FOREIGN}}
    with pytest.raises(CannotInstall, match="is taken"):
        named(json.dumps({"hooks": {"hookturn-Stop": FOREIGN}}), {"hookturn-Stop": OURS}, "f")


@pytest.mark.parametrize("edit", [grouped, listed, named])
def test_a_table_of_another_shape_stays(edit):
    with pytest.raises(CannotInstall, match="'hooks' is no object"):
        edit('{"hooks": []}', {"Stop": OURS}, "f")
    if edit is not named:
        with pytest.raises(CannotInstall, match=r"'hooks\.Stop' is no array"):
            edit('{"hooks": {"Stop": {}}}', {"Stop": OURS}, "f")
