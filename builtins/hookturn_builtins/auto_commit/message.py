"""What a commit says: the template filled in, and trailers that name session, turn and the audit trail's head."""

from __future__ import annotations

import os
import re

from hookturn.paths import open_private, safe_component

from ..places import session_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WORDS = ("summary", "prompts", "files", "count", "turn", "session", "agent")
"""What a message template may name in braces."""

_WIDTH = 72
_WORD = re.compile(r"\{(\w*)\}")


def summary(text: str) -> str:
    """Return a prompt's first line that says something: secrets taken out, one line, at most 72 characters."""
    from hookturn.redact import redact

    head = redact(text[:4000])
    line = next((line for line in head.splitlines() if line.strip()), "")
    line = " ".join("".join(c if c.isprintable() else " " for c in line).split())
    if len(line) <= _WIDTH:
        return line
    cut = line[: _WIDTH - 3]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut[_WIDTH // 2 :] else cut}..."


def unknown_words(template: str) -> list[str]:
    """Return the words in braces that a template must not have."""
    return [word for word in _WORD.findall(template) if word not in WORDS]


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return names for a sentence: ``a, b and 4 more``."""
    if len(names) <= most:
        return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"


def fill(template: str, values: Mapping[str, str], trailers: Mapping[str, str]) -> bytes:
    """Return a commit's message.

    Parameters:
        template: with WORDS in braces.
        values: word -> text.
        trailers: name -> one-line text; empty ones are left out.
    """
    body = _WORD.sub(lambda found: values.get(found[1], found[0]), template).strip()
    lines = [f"{name}: {value}" for name, value in trailers.items() if value]
    text = "\n\n".join([body or "Auto-commit", "\n".join(lines)])
    return text.replace("\0", " ").encode("utf-8", "replace") + b"\n"


def ref_component(session_id: str) -> str:
    """Return one component of a ref's name for any session id; different ids give different ones.

    Source: https://git-scm.com/docs/git-check-ref-format
    """
    name = safe_component(session_name(session_id))
    if ".." in name or name.endswith(".lock"):
        from hashlib import sha256

        name = f"x-{sha256(name.encode()).hexdigest()[:32]}"
    return name


def audit_head(project: str) -> str:
    """Return the SHA-256 of the audit trail's newest record, to which the next one is chained; or an empty string."""
    from ..audit_log.chain import hash_block, read_tail

    try:
        fd = open_private(os.path.join(project, ".hookturn", "audit.jsonl"))
    except OSError:
        return ""  # there is no trail
    try:
        tail = read_tail(fd, os.fstat(fd).st_size)
    except OSError:
        return ""
    finally:
        os.close(fd)
    return hash_block(tail.lines) if tail.whole else ""
