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
from .declaration_rules import (
    FLOOR,
    KNOBS,
    PAIRS,
    VERSION,
    big_integers,
    contradictions,
    in_order,
    invalid_values,
    join,
    unknown_members,
    unsupported,
)
from .host import Binding, Host
from .wire import SPEC

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

MAX_BYTES = 1 << 20
MAX_DEPTH = 32


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
            "interception_points": in_order(self.points),
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
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
        with open(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError("no regular file")
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
            _check_value(item, join(pointer, key), depth + 1)
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
    _stop("unknown_field", unknown_members(document))
    wrong = dict(big_integers(document, ""))
    wrong.update(invalid_values(document))
    _stop("invalid_field", sorted(wrong.items()))
    filled = _filled(document, surface)
    _stop("inconsistent", contradictions(document, filled))
    _stop("surface_unsupported", unsupported(filled, surface))
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
    shown["interception_points"] = in_order(shown["interception_points"])
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
                "at": in_order(binding.get("at", shown["interception_points"])),
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
