"""Host declarations: what is refused, by which class, and what the rest becomes."""

from __future__ import annotations

import copy
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn.engine.identity import canonical
from hookturn.hosts.agent_hooks import DeclarationError, Registry, from_declaration
from hookturn.hosts.agent_hooks.declaration import MAX_BYTES, Surface, read, resolve
from hookturn.hosts.agent_hooks.wire import POINTS

VERSION = "agent-hooks-declaration/1.0"
MINIMAL = {"declaration": VERSION, "bindings": [{"id": "allow", "kind": "com.example.allow"}]}


class Allows:
    def intercept(self, context):
        return {"decision": "allow"}


class Resolver:
    def resolve(self, request):
        raise AssertionError("not needed")


def registry(**surface):
    return Registry(
        {
            "com.example.allow": lambda config, about: Allows(),
            "com.example.odd": lambda config, about: object(),
        },
        identity_providers={"hmac-1": lambda context: "x"},
        approval_resolvers={"queue": Resolver()},
        approval_redactors={"strip": lambda context: context},
        surface=Surface(**surface),
    )


def with_(*path, value, base=MINIMAL):
    """The document with one place set."""
    document = copy.deepcopy(base)
    place = document
    for key in path[:-1]:
        place = place.setdefault(key, {}) if isinstance(place, dict) else place[key]
    place[path[-1]] = value
    return document


def without(*path, base=MINIMAL):
    document = copy.deepcopy(base)
    place = document
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return document


REFUSED = [
    ("version_unsupported", without("declaration"), "/declaration"),
    ("version_unsupported", with_("declaration", value="agent-hooks-declaration/0.1"), "/declaration"),
    ("version_unsupported", with_("declaration", value="agent-hooks-declaration/1.1"), "/declaration"),
    ("version_unsupported", with_("declaration", value=1), "/declaration"),
    ("spec_unsupported", with_("spec", value="agent-hooks/9.0"), "/spec"),
    ("spec_unsupported", with_("spec", value="agent-hooks/0.2"), "/spec"),
    ("spec_unsupported", with_("spec", value=None), "/spec"),
    ("unknown_field", with_("policy", value={}), "/policy"),
    ("unknown_field", with_("configuration", "composition", "on_timeout", value="deny"), "/configuration/composition/on_timeout"),
    ("unknown_field", with_("bindings", 0, "at~/", value=[]), "/bindings/0/at~0~1"),
    ("invalid_field", without("bindings"), "/bindings"),
    ("invalid_field", with_("bindings", value={}), "/bindings"),
    ("invalid_field", with_("bindings", 0, value=5), "/bindings/0"),
    ("invalid_field", without("bindings", 0, "id"), "/bindings/0/id"),
    ("invalid_field", with_("bindings", 0, "id", value="A"), "/bindings/0/id"),
    ("invalid_field", with_("bindings", 0, "kind", value="plain"), "/bindings/0/kind"),
    ("invalid_field", with_("bindings", 0, "at", value=[]), "/bindings/0/at"),
    ("invalid_field", with_("bindings", 0, "at", value=["input", "input"]), "/bindings/0/at"),
    ("invalid_field", with_("bindings", 0, "timeout_ms", value=0), "/bindings/0/timeout_ms"),
    ("invalid_field", with_("bindings", 0, "timeout_ms", value=True), "/bindings/0/timeout_ms"),
    ("invalid_field", with_("bindings", 0, "config", value={"n": [2**53]}), "/bindings/0/config/n/0"),
    ("invalid_field", with_("bindings", value=[{"id": "a", "kind": "a.b"}] * 257), "/bindings"),
    ("invalid_field", with_("id", value="-x"), "/id"),
    ("invalid_field", with_("$schema", value=1), "/$schema"),
    ("invalid_field", with_("host", value={}), "/host/name"),
    ("invalid_field", with_("host", value={"name": "h", "version": ""}), "/host/version"),
    ("invalid_field", with_("configuration", "mode", value="audit"), "/configuration/mode"),
    ("invalid_field", with_("configuration", "mode", value=["enforce"]), "/configuration/mode"),
    ("invalid_field", with_("configuration", "identity_provider", value="jcs-mine"), "/configuration/identity_provider"),
    ("invalid_field", with_("configuration", "records", "max_buffered", value=2**53), "/configuration/records/max_buffered"),
    ("invalid_field", with_("configuration", "timeouts", "interceptor_ms", value=3_600_001), "/configuration/timeouts/interceptor_ms"),
    ("invalid_field", with_("surface", "interception_points", value=["input"]), "/surface/interception_points"),
    ("invalid_field", with_("surface", "buffered_output", value=False), "/surface/exposure_bound"),
    ("invalid_field", with_("surface", "exposure_bound", value="none"), "/surface/exposure_bound"),
    ("invalid_field", with_("surface", "declaration_versions", value=[]), "/surface/declaration_versions"),
    ("invalid_field", with_("surface", "profiles", value={"parallel/unanimous": {"on_disagreement": []}}), "/surface/profiles/parallel~1unanimous/on_disagreement"),
    ("invalid_field", with_("extensions", "X", value=1), "/extensions/X"),
    ("inconsistent", with_("configuration", "composition", value={"profile": "sequential/run_all", "on_approval": "resume"}), "/configuration/composition/on_approval"),
    ("inconsistent", with_("surface", "interception_points", value=[p for p in POINTS if p != "agent_shutdown"]), "/surface/interception_points"),
    ("inconsistent", with_("surface", "interception_points", value=[p for p in POINTS if p != "post_tool_call"]), "/surface/interception_points"),
    ("inconsistent", with_("surface", "capabilities", value=["model_calls"]), "/surface/interception_points"),
    ("inconsistent", with_("surface", "profiles", value={"sequential/run_all": {}}), "/configuration/composition/profile"),
    ("inconsistent", with_("surface", "declaration_versions", value=["agent-hooks-declaration/2.0"]), "/surface/declaration_versions"),
    ("inconsistent", with_("bindings", value=[*MINIMAL["bindings"], *MINIMAL["bindings"]]), "/bindings/1/id"),
    ("surface_unsupported", with_("surface", "capabilities", value=["model_calls", "tool_calls", "streaming"]), "/surface/capabilities"),
    ("surface_unsupported", with_("configuration", "posture", "tool_seam_host_error", value="terminate"), "/configuration/posture/tool_seam_host_error"),
    ("surface_unsupported", with_("surface", value={"buffered_output": False, "exposure_bound": "none"}), "/surface/buffered_output"),
    ("reference_unresolved", with_("configuration", "identity_provider", value="hmac-2"), "/configuration/identity_provider"),
    ("reference_unresolved", with_("configuration", "approval", "resolver", value="other"), "/configuration/approval/resolver"),
    ("reference_unresolved", with_("configuration", "approval", "redactor", value="other"), "/configuration/approval/redactor"),
    ("kind_unknown", with_("bindings", 0, "kind", value="com.example.other"), "/bindings/0/kind"),
    ("binding_rejected", with_("bindings", 0, "kind", value="com.example.odd"), "/bindings/0"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "document", "pointer"), REFUSED)
def test_what_is_refused(kind, document, pointer):
    with pytest.raises(DeclarationError) as caught:
        from_declaration(document, registry())
    error = caught.value
    assert (error.kind, error.code) == (kind, f"declaration_error:{kind}")
    assert [found for found, _ in error.findings] == [pointer]
    assert (VERSION in error.accepted) == (kind == "version_unsupported")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "5",
        "{",
        '{"declaration": "a", "declaration": "b"}',
        '{"bindings": [{"id": "a", "id": "b"}]}',
        '{"x": NaN}',
        '{"x": "\\ud800"}',
        "\ufeff{}",
        '{"x":' + "[" * 40 + "]" * 40 + "}",
        '{"x":' + "[" * 100_000,
        '{"x": "' + "x" * MAX_BYTES + '"}',
    ],
)
def test_text_that_is_no_document(text):
    with pytest.raises(DeclarationError) as caught:
        from_declaration(text, registry())
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize("value", [{"x": float("inf")}, {1: 2}, {"x": {3}}, {"x": "\udcff"}, [], None])
def test_values_that_are_no_document(value):
    with pytest.raises(DeclarationError) as caught:
        from_declaration(value, registry())
    assert caught.value.kind == "malformed"
    deep: dict = {}
    for _ in range(5000):
        deep = {"x": deep}
    with pytest.raises(DeclarationError, match="malformed"):
        from_declaration(deep, registry())


def test_files(tmp_path):
    path = tmp_path / "host.json"
    path.write_text(json.dumps(MINIMAL))
    assert from_declaration(path, registry()).engine.plugins[1].name == "allow"
    for data in (b"\xef\xbb\xbf{}", b"\xff", b" " * (MAX_BYTES + 1)):
        path.write_bytes(data)
        with pytest.raises(DeclarationError) as caught:
            from_declaration(path, registry())
        assert caught.value.kind == "unreadable"
    os.mkfifo(tmp_path / "fifo")
    for other in (tmp_path, tmp_path / "none.json", tmp_path / "fifo"):
        with pytest.raises(DeclarationError) as caught:
            from_declaration(other, registry())
        assert caught.value.kind == "unreadable"
        assert not caught.value.findings[0][1].count(str(tmp_path))


def test_all_problems_of_a_step_are_told_and_no_setting_is():
    document = with_("configuration", "mode", value="audit")
    document["bindings"][0].update(id="A", kind="b", config={"password": "hunter2", "n": 2**60})
    with pytest.raises(DeclarationError) as caught:
        from_declaration(document, registry())
    assert [pointer for pointer, _ in caught.value.findings] == [
        "/bindings/0/config/n",
        "/bindings/0/id",
        "/bindings/0/kind",
        "/configuration/mode",
    ]
    assert "hunter2" not in str(caught.value)

    def refuse(config, about):
        raise ValueError(f"bad password {config}")

    kinds = Registry({"com.example.allow": refuse})
    with pytest.raises(DeclarationError) as caught:
        from_declaration(with_("bindings", 0, "config", value={"password": "hunter2"}), kinds)
    assert caught.value.kind == "binding_rejected" and "hunter2" not in str(caught.value)


def test_the_defaults_are_those_of_the_contract():
    filled = resolve(read({**MINIMAL, "$schema": "x"}), registry())
    # The canonical form of the kit's golden fixture D-01 (conformance/golden/declaration.json).
    assert json.loads(canonical(filled)) == {
        "bindings": [
            {"at": list(POINTS), "config": {}, "id": "allow", "kind": "com.example.allow", "timeout_ms": 5000}
        ],
        "configuration": {
            "approval": {"redactor": None, "resolver": None},
            "composition": {"on_approval": "stop", "profile": "sequential/first_deny"},
            "identity_provider": "jcs-sha256",
            "mode": "enforce",
            "posture": {"tool_seam_host_error": "continue"},
            "records": {"max_buffered": None},
            "timeouts": {"approval_resolver_ms": 5000, "interceptor_ms": 5000},
        },
        "declaration": VERSION,
        "extensions": {},
        "spec": "agent-hooks/0.1",
        "surface": {
            "buffered_output": True,
            "capabilities": ["bigint_json", "host_declaration", "int64_json", "model_calls", "tool_calls"],
            "declaration_versions": [VERSION],
            "interception_points": list(POINTS),
            "profiles": {
                "parallel/strictest": {"on_transform_conflict": ["approval", "deny"]},
                "parallel/unanimous": {"on_disagreement": ["approval", "deny"]},
                "sequential/first_deny": {"on_approval": ["resume", "stop"]},
                "sequential/run_all": {},
            },
        },
    }


def test_a_declared_host_runs_as_declared():
    seen = []

    def kind(config, about):
        seen.append((config, about.id, about.at, about.timeout, about.declaration_version))
        config["changed"] = True
        return Allows()

    document = {
        **MINIMAL,
        "configuration": {
            "composition": {"profile": "parallel/unanimous", "on_disagreement": "approval"},
            "identity_provider": "hmac-1",
            "approval": {"resolver": "queue", "redactor": "strip"},
            "records": {"max_buffered": 1},
            "timeouts": {"interceptor_ms": None},
        },
        "bindings": [
            {
                "id": "a",
                "kind": "com.example.mine",
                "config": {"x": 1},
                "at": ["output", "input"],
                "timeout_ms": 20,
            },
            {"id": "b", "kind": "com.example.mine"},
        ],
    }
    known = registry()
    known.kinds["com.example.mine"] = kind
    host = from_declaration(document, known)
    assert seen[0] == ({"x": 1, "changed": True}, "a", ("input", "output"), 0.02, VERSION)
    assert seen[1][3] is None and document["bindings"][0]["config"] == {"x": 1}
    with host.engine.session() as session:
        assert session.submit("hi").goes_on
    [record] = host.records
    assert record["declaration"] == VERSION and record["identity_provider"] == "hmac-1"
    assert record["composition"] == {"profile": "parallel/unanimous", "on_disagreement": "approval"}
    assert record["interceptors_registered"] == 1  # at the end of the session only b is bound


def test_a_surface_that_is_left_out_is_the_codes_own():
    small = registry(capabilities=["host_declaration"])
    filled = resolve(read(MINIMAL), small)
    assert filled["surface"]["interception_points"] == ["agent_startup", "input", "output", "agent_shutdown"]
    assert filled["bindings"][0]["at"] == filled["surface"]["interception_points"]
    with pytest.raises(DeclarationError, match="inconsistent"):
        resolve(read(with_("bindings", 0, "at", value=["pre_tool_call"])), small)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(["", "configuration", "surface", "bindings", "host", "extensions", "spec", "id"]), JSON
)
def test_any_value_anywhere_is_taken_or_refused_by_class(member, value):
    document = value if not member else {**MINIMAL, member: value}
    try:
        filled = resolve(read(document), registry())
    except DeclarationError as error:
        assert error.code.startswith("declaration_error:") and error.findings
    else:
        assert resolve(read(filled), registry()) == filled  # a resolved document resolves to itself
