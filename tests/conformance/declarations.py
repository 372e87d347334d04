"""Random host declarations through the SDK's loader and hookturn's: the same refusal class, or the same resolved form.

``python declarations.py [COUNT [SEED]]``
"""

from __future__ import annotations

import copy
import json
import random
import sys
from typing import Any

from agent_hooks import DeclarationError as TheirError
from agent_hooks import HostDeclaration, HostRegistry, HostSurface
from agent_hooks.ctk import load_vectors

from hookturn.engine.identity import canonical
from hookturn.hosts.agent_hooks.declaration import (
    DeclarationError,
    Registry,
    Surface,
    read,
    resolve,
)
from hookturn.hosts.agent_hooks.declaration_rules import CAPABILITIES, KNOBS
from hookturn.hosts.agent_hooks.wire import POINTS

HAS = ("host_declaration", "int64_json", "model_calls", "tool_calls")
NAMES = ("ctk-scripted", "ctk-redact", "ctk-fault", "ctk.scripted")
WORDS = [
    *POINTS,
    *CAPABILITIES,
    *KNOBS,
    *NAMES,
    *("stop", "resume", "deny", "approval", "enforce", "evaluate_only", "continue", "terminate"),
    *("agent-hooks-declaration/1.0", "agent-hooks-declaration/1.1", "agent-hooks/0.1", "agent-hooks/0.0"),
    *("jcs-sha256", "jcs-other", "a", "A", "", "x" * 65, "a.b", "a..b", "é"),
    *("agent-hooks/1.1", "agent-hooks/0.2", "agent-hooks/00.01", "agent-hooks/0.1\n"),
]
LEAVES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**53 - 1,
    2**53,
    3_600_000,
    3_600_001,
    1.5,
    1.0,
    "",
    [],
    {},
]
KEYS = [
    *("$schema", "declaration", "spec", "id", "host", "configuration", "surface", "bindings", "extensions"),
    *("name", "version", "mode", "composition", "identity_provider", "approval", "posture", "timeouts"),
    *(
        "records",
        "profile",
        "on_approval",
        "on_disagreement",
        "on_transform_conflict",
        "resolver",
        "redactor",
    ),
    *("tool_seam_host_error", "interceptor_ms", "approval_resolver_ms", "max_buffered", "kind", "config"),
    *("interception_points", "capabilities", "profiles", "buffered_output", "exposure_bound", "at"),
    *("declaration_versions", "timeout_ms", "other", "x-y"),
]


def documents() -> list[Any]:
    """The documents of the kit's vectors, and one that states everything."""
    found = [vector["host_declaration"] for vector in load_vectors() if "host_declaration" in vector]
    everything = copy.deepcopy(
        next(item for item in found if item.get("id") and "surface" in item and len(item["bindings"]) > 1)
    )
    everything["configuration"]["approval"]["redactor"] = "ctk-redact"
    everything["surface"]["profiles"] = {
        name: {knob: list(values) for knob, values in knobs.items()} for name, knobs in KNOBS.items()
    }
    everything["bindings"][0].update(at=["pre_tool_call"], timeout_ms=100)
    return [*found, *[everything] * 20]


def places(value: Any) -> list[tuple[Any, Any]]:
    """All (container, key) pairs of a document."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        found += places(item)
    return found


def leaf(rng: random.Random) -> Any:
    """A random value."""
    if rng.random() < 0.6:
        return rng.choice(WORDS)
    if rng.random() < 0.3:
        return rng.sample(WORDS, rng.randint(0, 5))
    return copy.deepcopy(rng.choice(LEAVES))


def mutate(rng: random.Random, document: Any) -> Any:
    """A document with some things changed in it."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        found = places(document)
        if not found:
            return document
        holder, key = rng.choice(found)
        kind = rng.random()
        if kind < 0.25:
            del holder[key]
        elif kind < 0.4 and isinstance(holder, dict):
            holder[rng.choice(KEYS)] = leaf(rng)
        elif kind < 0.5 and isinstance(holder, list):
            holder.append(copy.deepcopy(rng.choice(holder)) if holder and rng.random() < 0.5 else leaf(rng))
        else:
            holder[key] = leaf(rng)
    return document


def theirs(document: Any, registry: HostRegistry) -> str:
    """The SDK's answer."""
    try:
        return registry.resolve(HostDeclaration.from_value(document)).canonical_json()
    except TheirError as error:
        return error.code


def ours(document: Any, registry: Registry) -> str:
    """hookturn's answer."""
    try:
        return canonical(resolve(read(document), registry))
    except DeclarationError as error:
        return error.code


def main() -> int:
    """Compare; 0 only if no document differs."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng = random.Random(seed)
    known = documents()

    def never(*_: Any) -> Any:
        raise AssertionError("resolving calls nothing")

    sdk = (
        HostRegistry.for_conformance(HostSurface.from_capabilities(HAS))
        .kind("ctk.scripted", never)
        .identity_provider("ctk-fault", never)
        .approval_resolver("ctk-scripted", never)
        .approval_redactor("ctk-redact", never)
    )
    mine = Registry(
        {"ctk.scripted": never},
        identity_providers={"ctk-fault": never},
        approval_resolvers={"ctk-scripted": never},
        approval_redactors={"ctk-redact": never},
        surface=Surface(HAS),
    )
    differing = 0
    outcomes: dict[str, int] = {}
    for number in range(count):
        document = known[number] if number < len(known) else mutate(rng, rng.choice(known))
        one, other = theirs(document, sdk), ours(document, mine)
        outcome = one if one.startswith("declaration_error") else "accepted"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if one != other:
            differing += 1
            if differing <= 8:
                print(f"document {number} of seed {seed}: {json.dumps(document)}")
                print(f"  the SDK:  {one}\n  hookturn: {other}")
    for outcome, times in sorted(outcomes.items()):
        print(f"{outcome:40} {times:6}")
    print(f"{count} random declarations, {differing} differ from the SDK's loader")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
