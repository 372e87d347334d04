"""The rules that a host declaration must keep: its shape, its values, and what contradicts itself.

Steps 5 to 8 of section 7.7.6, each a function that returns its findings as
(JSON pointer, what is wrong).
"""

from __future__ import annotations

import re

from .records import PROFILES
from .wire import POINTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from .declaration import Surface

    Findings = list[tuple[str, str]]

VERSION = "agent-hooks-declaration/1.0"
MAX_INTEGER = 2**53 - 1
MAX_MILLISECONDS = 3_600_000

CAPABILITIES = (
    "bigint_json",
    "host_declaration",
    "incremental_output",
    "int64_json",
    "model_calls",
    "multi_turn",
    "parallel_tool_calls",
    "streaming",
    "tool_calls",
)
FLOOR = ("agent_startup", "input", "output", "agent_shutdown")
PAIRS = {
    "model_calls": ("pre_model_call", "post_model_call"),
    "tool_calls": ("pre_tool_call", "post_tool_call"),
}
KNOBS: dict[str, dict[str, tuple[str, str]]] = {
    "sequential/first_deny": {"on_approval": ("stop", "resume")},
    "sequential/run_all": {},
    "parallel/strictest": {"on_transform_conflict": ("deny", "approval")},
    "parallel/unanimous": {"on_disagreement": ("deny", "approval")},
}
"""Profile -> its knobs with their values, the default first."""

_KNOB_VALUES = {knob: values for knobs in KNOBS.values() for knob, values in knobs.items()}
_REFERENCE = r"[a-z][a-z0-9_-]{0,63}"
_KIND = r"[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)+"


def join(pointer: str, key: str) -> str:
    """Return the JSON pointer of a member."""
    return f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"


def in_order(points: Iterable[str]) -> list[str]:
    """Return interception points in the order of a session."""
    chosen = set(points)
    return [point for point in POINTS if point in chosen]


# Member -> None for a leaf (checked in step 6), a table for an object.
_SHAPE: dict[str, Any] = {
    "$schema": None,
    "declaration": None,
    "spec": None,
    "id": None,
    "host": {"name": None, "version": None},
    "configuration": {
        "mode": None,
        "composition": {"profile": None, **dict.fromkeys(_KNOB_VALUES)},
        "identity_provider": None,
        "approval": {"resolver": None, "redactor": None},
        "posture": {"tool_seam_host_error": None},
        "timeouts": {"interceptor_ms": None, "approval_resolver_ms": None},
        "records": {"max_buffered": None},
    },
    "surface": {
        "interception_points": None,
        "capabilities": None,
        "profiles": {name: dict.fromkeys(knobs) for name, knobs in KNOBS.items()},
        "buffered_output": None,
        "exposure_bound": None,
        "declaration_versions": None,
    },
    "bindings": None,
    "extensions": None,
}
_BINDING: dict[str, Any] = dict.fromkeys(("id", "kind", "config", "at", "timeout_ms"))


def unknown_members(document: dict[str, Any]) -> Findings:
    """Step 5: members that the contract does not know, at any closed level."""
    findings = _strangers(document, _SHAPE, "")
    bindings = document.get("bindings")
    for index, binding in enumerate(bindings if isinstance(bindings, list) else ()):
        findings += _strangers(binding, _BINDING, f"/bindings/{index}")
    return findings


def _strangers(value: Any, shape: Mapping[str, Any], pointer: str) -> Findings:
    findings: Findings = []
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in shape:
                findings.append((join(pointer, key), "there is no such member"))
            elif shape[key] is not None:
                findings += _strangers(item, shape[key], join(pointer, key))
    return findings


class _Checker:
    """Collects what is wrong with single values."""

    def __init__(self) -> None:
        self.findings: Findings = []

    def say(self, pointer: str, detail: str) -> None:
        self.findings.append((pointer, detail))

    def object(self, parent: Mapping[str, Any], name: str, pointer: str) -> dict[str, Any]:
        value = parent.get(name, {})
        if not isinstance(value, dict):
            self.say(f"{pointer}/{name}", "must be an object")
            return {}
        return value

    def text(self, parent: Mapping[str, Any], name: str, pointer: str, pattern: str, longest: int) -> None:
        if name not in parent:
            return
        value = parent[name]
        fits = isinstance(value, str) and len(value) <= longest and re.fullmatch(pattern, value, re.DOTALL)
        if not fits:
            self.say(f"{pointer}/{name}", f"must be a string that matches {pattern}, at most {longest} long")

    def one_of(self, parent: Mapping[str, Any], name: str, pointer: str, values: Iterable[Any]) -> None:
        if name in parent and (not isinstance(parent[name], str) or parent[name] not in values):
            self.say(f"{pointer}/{name}", f"must be one of {', '.join(map(str, values))}")

    def some_of(
        self, parent: Mapping[str, Any], name: str, pointer: str, values: Iterable[str], least: int = 0
    ) -> None:
        if name not in parent:
            return
        given = parent[name]
        here = f"{pointer}/{name}"
        if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
            self.say(here, "must be an array of strings")
        elif any(item not in values for item in given):
            self.say(here, f"may hold {', '.join(values)} only")
        elif len(set(given)) != len(given):
            self.say(here, "holds something twice")
        elif len(given) < least:
            self.say(here, f"must hold at least {least}")

    def number(self, parent: Mapping[str, Any], name: str, pointer: str, largest: int) -> None:
        value = parent.get(name)
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= largest:
            self.say(f"{pointer}/{name}", f"must be an integer from 1 to {largest}, or null")


def invalid_values(document: dict[str, Any]) -> Findings:
    """Step 6: wrong types, values outside of closed sets, patterns, ranges, members that are missing."""
    check = _Checker()
    if not isinstance(document.get("$schema", ""), str):
        check.say("/$schema", "must be a string")
    check.text(document, "id", "", r"[a-z0-9][a-z0-9._-]{0,63}", 64)
    host = check.object(document, "host", "")
    if "host" in document and "name" not in host:
        check.say("/host/name", "is missing")
    check.text(host, "name", "/host", r"[a-z0-9_-]{1,64}", 64)
    check.text(host, "version", "/host", r".+", 64)
    _invalid_configuration(check, check.object(document, "configuration", ""))
    _invalid_surface(check, check.object(document, "surface", ""))
    bindings = document.get("bindings")
    if not isinstance(bindings, list):
        check.say("/bindings", "must be an array")
    elif len(bindings) > 256:
        check.say("/bindings", "may hold 256 bindings at most")
    else:
        for index, binding in enumerate(bindings):
            _invalid_binding(check, binding, f"/bindings/{index}")
    for key in check.object(document, "extensions", ""):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", key):
            check.say(join("/extensions", key), "is no name of an extension")
    return check.findings


def _invalid_configuration(check: _Checker, given: dict[str, Any]) -> None:
    here = "/configuration"
    check.one_of(given, "mode", here, ("enforce", "evaluate_only"))
    composition = check.object(given, "composition", here)
    check.one_of(composition, "profile", f"{here}/composition", tuple(PROFILES))
    for knob, values in _KNOB_VALUES.items():
        check.one_of(composition, knob, f"{here}/composition", values)
    provider = given.get("identity_provider")
    if provider is not None and provider != "jcs-sha256":
        check.text(given, "identity_provider", here, _REFERENCE, 64)
        if isinstance(provider, str) and provider.startswith("jcs"):
            check.say(f"{here}/identity_provider", "names that begin with jcs are reserved")
    approval = check.object(given, "approval", here)
    for name in ("resolver", "redactor"):
        if approval.get(name) is not None:
            check.text(approval, name, f"{here}/approval", _REFERENCE, 64)
    posture = check.object(given, "posture", here)
    check.one_of(posture, "tool_seam_host_error", f"{here}/posture", ("continue", "terminate"))
    timeouts = check.object(given, "timeouts", here)
    for name in ("interceptor_ms", "approval_resolver_ms"):
        check.number(timeouts, name, f"{here}/timeouts", MAX_MILLISECONDS)
    check.number(check.object(given, "records", here), "max_buffered", f"{here}/records", MAX_INTEGER)


def _invalid_surface(check: _Checker, given: dict[str, Any]) -> None:
    here = "/surface"
    check.some_of(given, "interception_points", here, POINTS, 4)
    check.some_of(given, "capabilities", here, CAPABILITIES)
    profiles = check.object(given, "profiles", here)
    for name in profiles:
        knobs = check.object(profiles, name, f"{here}/profiles")
        for knob in knobs:
            pointer = join(f"{here}/profiles", name)
            check.some_of(knobs, knob, pointer, _KNOB_VALUES[knob], 1)
    buffered = given.get("buffered_output", True)
    if not isinstance(buffered, bool):
        check.say(f"{here}/buffered_output", "must be true or false")
    check.text(given, "exposure_bound", here, r".+", 512)
    if buffered is False and "exposure_bound" not in given:
        check.say(f"{here}/exposure_bound", "is needed where buffered_output is false")
    if buffered is True and "exposure_bound" in given:
        check.say(f"{here}/exposure_bound", "belongs to buffered_output: false")
    versions = given.get("declaration_versions", [VERSION])
    fits = (
        isinstance(versions, list)
        and versions
        and all(
            isinstance(item, str) and re.fullmatch(r"agent-hooks-declaration/[0-9]+\.[0-9]+", item)
            for item in versions
        )
        and len(set(versions)) == len(versions)
    )
    if not fits:
        check.say(f"{here}/declaration_versions", "must be an array of different versions, one at least")


def _invalid_binding(check: _Checker, given: Any, here: str) -> None:
    if not isinstance(given, dict):
        check.say(here, "must be an object")
        return
    for name in ("id", "kind"):
        if name not in given:
            check.say(f"{here}/{name}", "is missing")
    check.text(given, "id", here, _REFERENCE, 64)
    check.text(given, "kind", here, _KIND, 128)
    check.some_of(given, "at", here, POINTS, 1)
    check.number(given, "timeout_ms", here, MAX_MILLISECONDS)


def big_integers(value: Any, pointer: str) -> Findings:
    """Integers that have no canonical form, anywhere in the document (section 4.4)."""
    if isinstance(value, dict):
        parts = [big_integers(item, join(pointer, key)) for key, item in value.items()]
    elif isinstance(value, list):
        parts = [big_integers(item, f"{pointer}/{index}") for index, item in enumerate(value)]
    elif isinstance(value, int) and abs(value) > MAX_INTEGER:
        return [(pointer, "no integer may be beyond 2^53 - 1")]
    else:
        return []
    return [finding for part in parts for finding in part]


def contradictions(document: dict[str, Any], filled: dict[str, Any]) -> Findings:
    """Step 7: what contradicts itself."""
    findings: Findings = []
    surface = filled["surface"]
    points, capabilities = set(surface["interception_points"]), set(surface["capabilities"])
    findings += [
        ("/surface/interception_points", f"{point} is missing: every host has it")
        for point in FLOOR
        if point not in points
    ]
    for name, pair in PAIRS.items():
        there = [point for point in pair if point in points]
        if len(there) == 1 or (name in capabilities) != bool(there):
            findings.append(
                ("/surface/interception_points", f"{' and '.join(pair)} go with {name}, and with each other")
            )
    composition = filled["configuration"]["composition"]
    profile = composition["profile"]
    stated = document.get("configuration", {}).get("composition", {})
    findings += [
        (f"/configuration/composition/{knob}", f"{profile} does not look at it")
        for knob in stated
        if knob != "profile" and knob not in KNOBS[profile]
    ]
    supported = surface["profiles"].get(profile)
    if supported is None:
        findings.append(("/configuration/composition/profile", "the surface does not have this profile"))
    else:
        findings += [
            (f"/configuration/composition/{knob}", "the surface does not have this value")
            for knob in KNOBS[profile]
            if composition[knob] not in supported[knob]
        ]
    if "incremental_output" in capabilities and surface["buffered_output"]:
        findings.append(("/surface/capabilities", "incremental_output needs buffered_output: false"))
    if filled["declaration"] not in surface["declaration_versions"]:
        findings.append(("/surface/declaration_versions", "the document's own version is missing"))
    seen: set[str] = set()
    for index, binding in enumerate(filled["bindings"]):
        if binding["id"] in seen:
            findings.append((f"/bindings/{index}/id", "another binding has this id"))
        seen.add(binding["id"])
        if not set(binding["at"]) <= points:
            findings.append((f"/bindings/{index}/at", "a point is not in the surface"))
    return findings


def unsupported(filled: dict[str, Any], surface: Surface) -> Findings:
    """Step 8: what the host's code cannot keep."""
    stated = filled["surface"]
    findings = [
        (f"/surface/{name}", f"the host does not have {', '.join(sorted(set(stated[name]) - has))}")
        for name, has in (
            ("interception_points", surface.points),
            ("capabilities", surface.capabilities),
            ("declaration_versions", surface.versions),
        )
        if not set(stated[name]) <= has
    ]
    for profile, knobs in stated["profiles"].items():
        has = surface.profiles.get(profile)
        if has is None:
            findings.append((join("/surface/profiles", profile), "the host does not have this profile"))
            continue
        findings += [
            (join("/surface/profiles", profile), f"the host does not have all values of {knob}")
            for knob, values in knobs.items()
            if not set(values) <= has.get(knob, frozenset(KNOBS[profile][knob][:1]))
        ]
    if not stated["buffered_output"] and not surface.streams_unbuffered:
        findings.append(("/surface/buffered_output", "the host buffers its output"))
    posture = filled["configuration"]["posture"]["tool_seam_host_error"]
    if posture != surface.tool_seam_host_error:
        findings.append(
            (
                "/configuration/posture/tool_seam_host_error",
                f"the host does {surface.tool_seam_host_error!r}",
            )
        )
    return findings
