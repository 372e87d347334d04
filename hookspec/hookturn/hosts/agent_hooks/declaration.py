"""Host declarations (``agent-hooks-declaration/1.0``): one JSON document from which a host is built, or refused.

Written from the published schema ``host-declaration-1.0.schema.json`` and
section 7.7. A document that names anything that the host cannot keep is
refused as a whole, with the class of the first step that fails; nothing is
narrowed or guessed.
"""

from __future__ import annotations

import json
import re

from ...spec.errors import ConfigError
from .host import Binding, Host
from .records import PROFILES
from .wire import POINTS, SPEC

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

VERSION = "agent-hooks-declaration/1.0"
MAX_BYTES = 1 << 20
MAX_DEPTH = 32
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


class DeclarationError(ConfigError):
    """A refused host declaration.

    Parameters:
        kind: the refusal class, such as ``unknown_field``.
        findings: (JSON pointer, what is wrong) of all that the failing step found.
        accepted: the versions that are accepted, for ``version_unsupported``.

    Attributes:
        code: ``declaration_error:<kind>``.
    """

    def __init__(self, kind: str, findings: list[tuple[str, str]], accepted: Iterable[str] = ()) -> None:
        self.kind = kind
        self.code = f"declaration_error:{kind}"
        self.findings = findings
        self.accepted = tuple(accepted)
        said = "; ".join(f"{pointer or '/'}: {detail}" for pointer, detail in findings)
        super().__init__(f"{self.code}: {said}")


class Surface:
    """What the host's code can keep (section 7.7.4); a document may ask for less, never for more.

    Parameters:
        capabilities: names from CAPABILITIES; the model's and the tools' points follow from them.
        tool_seam_host_error: ``continue`` or ``terminate``: what happens to the run after a host error at a tool.
        profiles: profile -> knob -> supported values; default: all.
        streams_unbuffered: whether output may reach the caller before its verdict.
        versions: the declaration versions that are accepted.
    """

    def __init__(
        self,
        capabilities: Iterable[str] = (
            "bigint_json",
            "host_declaration",
            "int64_json",
            "model_calls",
            "tool_calls",
        ),
        *,
        tool_seam_host_error: str = "continue",
        profiles: Mapping[str, Mapping[str, Iterable[str]]] = KNOBS,
        streams_unbuffered: bool = False,
        versions: Iterable[str] = (VERSION,),
    ) -> None:
        self.capabilities = frozenset(capabilities)
        more = [point for name, pair in PAIRS.items() if name in self.capabilities for point in pair]
        self.points = frozenset((*FLOOR, *more))
        self.tool_seam_host_error = tool_seam_host_error
        self.profiles = {
            name: {knob: frozenset(values) for knob, values in knobs.items()}
            for name, knobs in profiles.items()
        }
        self.streams_unbuffered = streams_unbuffered
        self.versions = frozenset(versions)

    def to_json(self) -> dict[str, Any]:
        """Return the surface as a document states it."""
        return {
            "interception_points": _in_order(self.points),
            "capabilities": sorted(self.capabilities),
            "profiles": {
                name: {knob: sorted(values) for knob, values in knobs.items()}
                for name, knobs in self.profiles.items()
            },
            "buffered_output": True,
            "declaration_versions": sorted(self.versions),
        }


class BindingContext:
    """What a kind's resolver learns of the binding that it makes an interceptor for.

    Attributes:
        id, kind: of the binding.
        at: its interception points.
        timeout: seconds, or None.
        host: the document's host block, or None.
        declaration_version: the document's version.
    """

    __slots__ = ("at", "declaration_version", "host", "id", "kind", "timeout")

    def __init__(self, binding: Mapping[str, Any], document: Mapping[str, Any]) -> None:
        self.id: str = binding["id"]
        self.kind: str = binding["kind"]
        self.at: tuple[str, ...] = tuple(binding["at"])
        self.timeout = _seconds(binding["timeout_ms"])
        self.host = dict(document["host"]) if "host" in document else None
        self.declaration_version: str = document["declaration"]


class Registry:
    """What the host's code offers to documents.

    Parameters:
        kinds: kind -> function of (config, BindingContext) that returns an interceptor or raises.
        identity_providers: name -> function that identifies a context.
        approval_resolvers: name -> resolver.
        approval_redactors: name -> function that takes from a context what a resolver may not see.
        surface: what the code can keep.
    """

    def __init__(
        self,
        kinds: Mapping[str, Callable[[Any, BindingContext], Any]] | None = None,
        *,
        identity_providers: Mapping[str, Callable[[dict[str, Any]], str]] | None = None,
        approval_resolvers: Mapping[str, Any] | None = None,
        approval_redactors: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] | None = None,
        surface: Surface | None = None,
    ) -> None:
        self.kinds = dict(kinds or {})
        self.identity_providers = dict(identity_providers or {})
        self.approval_resolvers = dict(approval_resolvers or {})
        self.approval_redactors = dict(approval_redactors or {})
        self.surface = surface or Surface()


def from_declaration(source: Any, registry: Registry, *, host_class: type[Host] = Host, **more: Any) -> Host:
    """Build the host that a declaration describes.

    Parameters:
        source: the document as a dict or as JSON text, or the path of its file (an ``os.PathLike``).
        registry: what the host's code offers.
        host_class: the class of the host.
        more: tools, sink and engine, as for Host.

    Raises:
        DeclarationError: when the document is refused.
    """
    document = resolve(read(source), registry)
    configuration = document["configuration"]
    approval = configuration["approval"]
    provider = configuration["identity_provider"]
    bindings = []
    for index, binding in enumerate(document["bindings"]):
        about = BindingContext(binding, document)
        try:
            # A copy: a resolver that edits its settings must not change the document.
            made = registry.kinds[about.kind](json.loads(json.dumps(binding["config"])), about)
        except Exception as error:  # a host's own function, whose message may hold settings
            detail = f"the binding {about.id!r} was refused by its kind ({type(error).__name__})"
            raise DeclarationError("binding_rejected", [(f"/bindings/{index}", detail)]) from error
        if not callable(getattr(made, "intercept", None)):
            detail = f"the kind {about.kind!r} made a {type(made).__name__}, which is no interceptor"
            raise DeclarationError("binding_rejected", [(f"/bindings/{index}", detail)])
        bindings.append(Binding(made, about.id, about.at, about.timeout))
    return host_class(
        bindings,
        mode=configuration["mode"],
        profile=configuration["composition"]["profile"],
        knobs={name: value for name, value in configuration["composition"].items() if name != "profile"},
        resolver=registry.approval_resolvers[approval["resolver"]] if approval["resolver"] else None,
        resolver_timeout=_seconds(configuration["timeouts"]["approval_resolver_ms"]),
        redactor=registry.approval_redactors[approval["redactor"]] if approval["redactor"] else None,
        identity_provider=provider,
        provider=registry.identity_providers.get(provider) if provider else None,
        declaration=document["declaration"],
        keep=configuration["records"]["max_buffered"],
        **more,
    )


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


# -- steps 1 and 2: read and parse --------------------------------------------------------------


def read(source: Any) -> dict[str, Any]:
    """Return a document as a dict (see ``from_declaration``).

    Raises:
        DeclarationError: ``unreadable`` or ``malformed``.
    """
    if isinstance(source, str):
        return _parsed(source)
    if hasattr(source, "__fspath__"):
        return _parsed(_file(source))
    _check_value(source, "", 0)
    try:
        text = json.dumps(source, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise DeclarationError("malformed", [("", f"it has no JSON form: {error}")]) from None
    return _parsed(text)


def _file(path: os.PathLike[str]) -> str:
    import os
    import stat

    try:
        # Opened first, looked at second, so that what was looked at is what is read;
        # a FIFO must not block the open.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise DeclarationError("unreadable", [("", "it is no regular file")])
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DeclarationError("unreadable", [("", type(error).__name__)]) from None
    if len(data) > MAX_BYTES:
        raise DeclarationError("unreadable", [("", f"it is larger than {MAX_BYTES} bytes")])
    if data.startswith(b"\xef\xbb\xbf"):
        raise DeclarationError("unreadable", [("", "it begins with a byte-order mark")])
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise DeclarationError("unreadable", [("", "it is not UTF-8")]) from None


def _parsed(text: str) -> dict[str, Any]:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            raise ValueError("a key stands twice in one object")
        return found

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is no JSON")

    try:
        if len(text.encode()) > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES} bytes")
        document = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        detail = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise DeclarationError("malformed", [("", detail)]) from None
    if not isinstance(document, dict):
        raise DeclarationError("malformed", [("", "it is not an object")])
    _check_value(document, "", 0)
    return document


def _check_value(value: Any, pointer: str, depth: int) -> None:
    """Refuse what JSON cannot carry, and what is nested too deep."""
    if isinstance(value, (dict, list, tuple)) and depth >= MAX_DEPTH:
        raise DeclarationError("malformed", [(pointer, f"it is nested deeper than {MAX_DEPTH} levels")])
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise DeclarationError("malformed", [(pointer, "a key is no string")])
            _check_text(key, pointer)
            _check_value(item, _join(pointer, key), depth + 1)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check_value(item, f"{pointer}/{index}", depth + 1)
    elif isinstance(value, str):
        _check_text(value, pointer)
    elif isinstance(value, float) and value - value != 0:
        raise DeclarationError("malformed", [(pointer, "it is no JSON number")])


def _check_text(text: str, pointer: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DeclarationError("malformed", [(pointer, "a text has no UTF-8 form")]) from None


def _join(pointer: str, key: str) -> str:
    return f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"


# -- steps 3 to 10: check and fill --------------------------------------------------------------


def resolve(document: dict[str, Any], registry: Registry) -> dict[str, Any]:
    """Check a document against what the host's code offers, and return it with every default filled in.

    Parameters:
        document: as ``read`` returns it.
        registry: what the host's code offers.

    Raises:
        DeclarationError: with the class of the first step that fails.
    """
    surface = registry.surface
    accepted = sorted(surface.versions & {VERSION})
    version = document.get("declaration")
    if version not in accepted:
        detail = f"this version is not accepted; one of {', '.join(accepted)}"
        raise DeclarationError("version_unsupported", [("/declaration", detail)], accepted)
    if "spec" in document and not _speaks(document["spec"]):
        detail = f"the document was written for another specification than {SPEC}"
        raise DeclarationError("spec_unsupported", [("/spec", detail)])
    _stop("unknown_field", _unknown(document))
    _stop("invalid_field", [*_invalid(document), *_big_integers(document, "")])
    filled = _filled(document, surface)
    _stop("inconsistent", _inconsistent(document, filled))
    _stop("surface_unsupported", _unsupported(filled, surface))
    _stop("reference_unresolved", _unresolved(filled, registry))
    kinds = [
        (f"/bindings/{index}/kind", f"there is no kind {binding['kind']!r}")
        for index, binding in enumerate(filled["bindings"])
        if binding["kind"] not in registry.kinds
    ]
    _stop("kind_unknown", kinds)
    return filled


def _stop(kind: str, findings: list[tuple[str, str]]) -> None:
    if findings:
        raise DeclarationError(kind, findings)


def _speaks(spec: Any) -> bool:
    found = re.fullmatch(r"agent-hooks/([0-9]+)\.([0-9]+)", spec) if isinstance(spec, str) else None
    ours = SPEC.partition("/")[2].split(".")
    return found is not None and int(found[1]) == int(ours[0]) and int(found[2]) <= int(ours[1])


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
_BINDING = dict.fromkeys(("id", "kind", "config", "at", "timeout_ms"))


def _unknown(document: dict[str, Any]) -> list[tuple[str, str]]:
    findings = _strangers(document, _SHAPE, "")
    bindings = document.get("bindings")
    for index, binding in enumerate(bindings if isinstance(bindings, list) else ()):
        findings += _strangers(binding, _BINDING, f"/bindings/{index}")
    return findings


def _strangers(value: Any, shape: Mapping[str, Any], pointer: str) -> list[tuple[str, str]]:
    findings: list[tuple[str, str]] = []
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in shape:
                findings.append((_join(pointer, key), "there is no such member"))
            elif shape[key] is not None:
                findings += _strangers(item, shape[key], _join(pointer, key))
    return findings


class _Checker:
    """Step 6: types, closed sets, patterns, ranges."""

    def __init__(self) -> None:
        self.findings: list[tuple[str, str]] = []

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
            self.say(f"{pointer}/{name}", f"must be a text that matches {pattern}, at most {longest} long")

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
            self.say(here, "must be a list of texts")
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


def _invalid(document: dict[str, Any]) -> list[tuple[str, str]]:
    check = _Checker()
    if not isinstance(document.get("$schema", ""), str):
        check.say("/$schema", "must be a text")
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
        check.say("/bindings", "must be a list")
    elif len(bindings) > 256:
        check.say("/bindings", "may hold 256 bindings at most")
    else:
        for index, binding in enumerate(bindings):
            _invalid_binding(check, binding, f"/bindings/{index}")
    for key in check.object(document, "extensions", ""):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", key):
            check.say(_join("/extensions", key), "is no name of an extension")
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
            pointer = _join(f"{here}/profiles", name)
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
        check.say(f"{here}/declaration_versions", "must be a list of different versions, one at least")


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


def _big_integers(value: Any, pointer: str) -> list[tuple[str, str]]:
    """Integers that have no canonical form, anywhere in the document (section 4.4)."""
    if isinstance(value, dict):
        parts = [_big_integers(item, _join(pointer, key)) for key, item in value.items()]
    elif isinstance(value, list):
        parts = [_big_integers(item, f"{pointer}/{index}") for index, item in enumerate(value)]
    elif isinstance(value, int) and abs(value) > MAX_INTEGER:
        return [(pointer, "no integer may be beyond 2^53 - 1")]
    else:
        return []
    return [finding for part in parts for finding in part]


def _filled(document: dict[str, Any], surface: Surface) -> dict[str, Any]:
    """The document with every default filled in and its sets in order; ``$schema`` is dropped."""
    configuration = document.get("configuration", {})
    composition = configuration.get("composition", {})
    profile = composition.get("profile", "sequential/first_deny")
    timeouts = configuration.get("timeouts", {})
    interceptor_ms = timeouts.get("interceptor_ms", 5000)
    approval = configuration.get("approval", {})
    stated = document.get("surface", {})
    shown = {**surface.to_json(), **stated}
    shown["interception_points"] = _in_order(shown["interception_points"])
    shown["capabilities"] = sorted(shown["capabilities"])
    shown["declaration_versions"] = sorted(shown["declaration_versions"])
    shown["profiles"] = {
        name: {
            knob: sorted(shown["profiles"][name].get(knob, values[:1]))
            for knob, values in KNOBS[name].items()
        }
        for name in shown["profiles"]
    }
    filled: dict[str, Any] = {
        "declaration": document["declaration"],
        "spec": document.get("spec", SPEC),
        "configuration": {
            "mode": configuration.get("mode", "enforce"),
            "composition": {
                "profile": profile,
                **{knob: composition.get(knob, values[0]) for knob, values in KNOBS[profile].items()},
            },
            "identity_provider": configuration.get("identity_provider", "jcs-sha256"),
            "approval": {name: approval.get(name) for name in ("resolver", "redactor")},
            "posture": {
                "tool_seam_host_error": configuration.get("posture", {}).get(
                    "tool_seam_host_error", "continue"
                )
            },
            "timeouts": {
                "interceptor_ms": interceptor_ms,
                "approval_resolver_ms": timeouts.get("approval_resolver_ms", interceptor_ms),
            },
            "records": {"max_buffered": configuration.get("records", {}).get("max_buffered")},
        },
        "surface": shown,
        "bindings": [
            {
                "id": binding["id"],
                "kind": binding["kind"],
                "config": binding.get("config", {}),
                "at": _in_order(binding.get("at", shown["interception_points"])),
                "timeout_ms": binding.get("timeout_ms", interceptor_ms),
            }
            for binding in document["bindings"]
        ],
        "extensions": document.get("extensions", {}),
    }
    for name in ("id", "host"):
        if name in document:
            filled[name] = document[name]
    return filled


def _in_order(points: Iterable[str]) -> list[str]:
    chosen = set(points)
    return [point for point in POINTS if point in chosen]


def _inconsistent(document: dict[str, Any], filled: dict[str, Any]) -> list[tuple[str, str]]:
    """Step 7: what contradicts itself."""
    findings: list[tuple[str, str]] = []
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


def _unsupported(filled: dict[str, Any], surface: Surface) -> list[tuple[str, str]]:
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
            findings.append((_join("/surface/profiles", profile), "the host does not have this profile"))
            continue
        findings += [
            (_join("/surface/profiles", profile), f"the host does not have all values of {knob}")
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


def _unresolved(filled: dict[str, Any], registry: Registry) -> list[tuple[str, str]]:
    configuration = filled["configuration"]
    approval = configuration["approval"]
    names = (
        (
            "/configuration/identity_provider",
            configuration["identity_provider"],
            {"jcs-sha256", *registry.identity_providers},
        ),
        ("/configuration/approval/resolver", approval["resolver"], registry.approval_resolvers),
        ("/configuration/approval/redactor", approval["redactor"], registry.approval_redactors),
    )
    return [
        (pointer, f"{name!r} is not registered")
        for pointer, name, known in names
        if name is not None and name not in known
    ]
