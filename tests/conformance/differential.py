"""Random scenarios through the kit's reference host and through hookturn: their records must say the same.

The vectors were known to hookturn's authors; these were written by nobody.
``python differential.py [COUNT [SEED]]``
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import Any

from agent_hooks import CompositionConfig, EnforcementMode
from agent_hooks.ctk import Scenario, ScriptedInterceptor, ScriptedResolver
from agent_hooks.ctk.reference import ReferenceHarness
from harness import Harness

PATHS = {
    "agent_startup": ["$target.tools_registered"],
    "input": ["$target.content", "$policy_target.content", '$target["content"]'],
    "pre_model_call": ["$target[0].content"],
    "post_model_call": ["$target.content"],
    "pre_tool_call": ["$target.url", '$target["url"]', "$target.deep.list[1]", "$target.deep"],
    "post_tool_call": ["$target.body", "$target"],
    "output": ["$target.content"],
    "agent_shutdown": ["$target.reason"],
}
BAD_PATHS = ["$target.no.such.place", "$target[7]", "$other.url", "$target.", "$targets"]
PROFILES: list[dict[str, str]] = [
    {"profile": "sequential/first_deny"},
    {"profile": "sequential/first_deny", "on_approval": "resume"},
    {"profile": "sequential/run_all"},
    {"profile": "parallel/strictest"},
    {"profile": "parallel/strictest", "on_transform_conflict": "approval"},
    {"profile": "parallel/unanimous"},
    {"profile": "parallel/unanimous", "on_disagreement": "approval"},
]
SCENARIO = {
    "input": {"content": "go", "role": "user"},
    "tools": [{"name": "get", "behavior": [{"return": {"body": "ok", "n": 1}}]}],
    "model_script": [
        {
            "respond": {
                "content": None,
                "tool_calls": [
                    {"id": "c1", "name": "get", "args": {"url": "x", "deep": {"list": [1, 2]}}},
                    {"id": "c2", "name": "get", "args": {"url": "y", "deep": {"list": [3, 4]}}},
                ],
                "finish_reason": "tool_calls",
            }
        },
        {"respond": {"content": "done", "tool_calls": [], "finish_reason": "stop"}},
    ],
}


def verdict(rng: random.Random, point: str) -> dict[str, Any]:
    """Return a rule's outcome: a verdict or a fault."""
    kind = rng.choices(
        ["allow", "deny", "liftable", "transform", "bad path", "raise", "malformed"],
        [30, 12, 16, 24, 6, 4, 4],
    )[0]
    if kind == "raise":
        return {"fault": "raise"}
    if kind == "malformed":
        return {"fault": "malformed_verdict"}
    said: dict[str, Any] = {"decision": "allow"}
    if kind in ("deny", "liftable"):
        said = {"decision": "deny", "reason": rng.choice(["r:a", "r:b"])}
        if kind == "liftable":
            said["approval"] = rng.choice([{}, {"who": "ops"}])
    elif kind in ("transform", "bad path"):
        path = rng.choice(PATHS[point] if kind == "transform" else BAD_PATHS)
        # Of its own for each point: hookturn's input goes into the messages as hooks left it,
        # the reference's as it came, and only a different value is a change in both.
        value = f"{point} {rng.randint(1, 2)}"
        said = {"decision": "transform", "transform": {"path": path, "value": value}}
    if rng.random() < 0.3:
        said["warnings"] = [{"reason": rng.choice(["w:a", "w:b"]), "message": rng.choice(["m", "é" * 150])}]
    if rng.random() < 0.3:
        said["result_labels"] = [rng.choice(["l:a", "l:b"])]
    if rng.random() < 0.2:
        said["message"] = "m" * rng.choice([3, 300])
    if rng.random() < 0.1:
        said["evidence"] = {"artefact": "sha256:00"}
    if kind == "allow" and rng.random() < 0.3:
        said["reason"] = "r:fine"
    return {"return": said}


def approvals(rng: random.Random) -> list[dict[str, Any]]:
    """Return an approval script, maybe none."""
    if rng.random() < 0.2:
        return []
    kind = rng.choices(
        ["allow", "transform", "bad", "reject", "odd", "unresolved", "raise", "echo"],
        [8, 5, 2, 4, 2, 2, 2, 2],
    )[0]
    resolve: dict[str, Any] = {"outcome": "approve", "verdict": {"decision": "allow"}}
    if kind in ("transform", "bad"):
        path = "$target.url" if kind == "transform" else "$target.nowhere.at.all"
        resolve["verdict"] = {"decision": "transform", "transform": {"path": path, "value": "approved"}}
    elif kind == "reject":
        resolve = {"outcome": "reject", "verdict": {"decision": "deny", "reason": "r:rejected"}}
    elif kind == "odd":
        resolve["verdict"] = {"decision": "deny", "reason": "r:odd"}
    elif kind == "unresolved":
        resolve = {"outcome": "unresolved"}
    elif kind == "raise":
        resolve = {"fault": "raise"}
    elif kind == "echo":
        resolve["identity_override"] = "sha256:" + "0" * 64
    elif rng.random() < 0.3:
        resolve["verdict"]["warnings"] = [{"reason": "w:approver"}]
        resolve["verdict"]["result_labels"] = ["l:approver"]
    return [{"resolve": resolve}]


def case(rng: random.Random) -> dict[str, Any]:
    """Return one random case."""
    scripts = []
    for _ in range(rng.randint(0, 4) if rng.random() < 0.1 else rng.randint(1, 4)):
        points = list(PATHS)
        # Mostly the tools' points: a no at the others ends the run early.
        weights = [1, 1, 2, 2, 12, 6, 2, 1]
        rules = []
        for point in dict.fromkeys(rng.choices(points, weights, k=rng.randint(1, 3))):
            rules.append({"at": point, **verdict(rng, point)})
        scripts.append(rules)
    return {
        "scripts": scripts,
        "approvals": approvals(rng),
        "composition": rng.choice(PROFILES),
        "mode": rng.choices(["enforce", "evaluate_only"], [5, 1])[0],
        "identity_provider": rng.choices(["jcs-sha256", None], [5, 1])[0],
        "redact": rng.choice([[], [], ["$target.url"]]),
    }


async def run(make: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Run a case through a harness; what the two must have in common."""
    harness = make()
    harness.setup(
        Scenario.from_wire(SCENARIO),
        [ScriptedInterceptor(rules) for rules in given["scripts"]],
        ScriptedResolver(given["approvals"]) if given["approvals"] else None,
        EnforcementMode(given["mode"]),
        CompositionConfig.from_wire(given["composition"]),
        given["identity_provider"],
        given["redact"],
    )
    try:
        done = await harness.run()
    finally:
        harness.teardown()
    return {
        "outcome": done.outcome.value,
        "tools": done.tool_invocations,
        "records": [common(record) for record in done.records],
    }


def common(record: dict[str, Any]) -> dict[str, Any]:
    """A record less what differs between hosts, and less what hookturn does as the text says and the
    reference does not."""
    same = dict(record)
    for name in ("timestamp", "session_id"):
        assert same.pop(name)
    same.pop("declaration", None)  # the reference builds every host from a declaration
    identities = same.pop("input_identity"), same.pop("enforced_identity")
    same["identities"] = [item is None for item in identities] + [identities[0] == identities[1]]
    said = same["verdict"] = json.loads(json.dumps(same["verdict"]))
    if str(said.get("reason", "")).startswith("host_error:"):
        said.pop("message", None)  # free words
        if same.get("decided_by") is None:
            # Section 7.3 joins the warnings of every verdict; the reference drops them where a change
            # could not be made.
            said.pop("warnings", None)
    if said.get("reason") in ("host_error:transform_invalid", "host_error:transform_target_forbidden"):
        # Section 10.3: nobody decided; the reference names the asking interceptor in one of the profiles.
        if same.get("resolved_by") == "approval":
            same.pop("decided_by")
        # Section 7.4: such a change becomes a deny; the reference shows it as one in run_all only.
        if same["composition"]["profile"] == "sequential/first_deny":
            same.pop("verdicts", None)
    if said["decision"] == "deny":
        # Section 7.3: labels come from permits only; the reference keeps a deny's own.
        said.pop("result_labels", None)
    # Section 10.3 allows 256 bytes with the ellipsis; the reference adds it behind 256.
    for holder in (said, *said.get("warnings", [])):
        if "message" in holder:
            holder["message"] = holder["message"][:100]
    if same["composition"]["profile"] == "sequential/run_all":
        # Section 7.4 defines it for both sequential profiles; the reference leaves it out here.
        same.pop("fold_truncated", None)
    same["verdicts"] = [
        {key: value for key, value in item.items() if key != "name"} for item in same.get("verdicts", [])
    ]
    return same


def main() -> int:
    """Compare; 0 only if no case differs."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng = random.Random(seed)
    differing = 0
    for number in range(count):
        given = case(rng)
        theirs, ours = (asyncio.run(run(make, given)) for make in (ReferenceHarness, Harness))
        if theirs != ours:
            differing += 1
            if differing <= 5:
                print(f"case {number} of seed {seed}: {json.dumps(given)}")
                for one, other in zip(theirs["records"], ours["records"], strict=False):
                    if one != other:
                        print("  reference:", json.dumps(one))
                        print("  hookturn: ", json.dumps(other))
                        break
                else:
                    print(
                        "  reference:",
                        json.dumps({k: theirs[k] for k in ("outcome", "tools")}),
                        len(theirs["records"]),
                    )
                    print(
                        "  hookturn: ",
                        json.dumps({k: ours[k] for k in ("outcome", "tools")}),
                        len(ours["records"]),
                    )
    print(f"{count} random scenarios, {differing} differ from the reference host")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
