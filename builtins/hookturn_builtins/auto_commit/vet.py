"""Decides which changed files must not get into a commit: secrets, keys, huge files, conflict markers."""

from __future__ import annotations

import os
import re
import stat
from fnmatch import fnmatchcase

from hookturn.platform import O_NOFOLLOW

# Names are compared in lower case.
_SAMPLES = (".example", ".sample", ".template", ".dist", ".defaults")
_SECRET_NAMES = (
    ".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".pypirc", ".git-credentials",
    ".htpasswd", ".vault-token", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk",
    "*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdbx", "*.kdb", "*.asc.key",
    "*.ovpn", "credentials.json", "client_secret*.json", "service-account*.json", "service_account*.json",
)  # fmt: skip
_SECRET_PATHS = (".aws/credentials", ".docker/config.json", ".kube/config")
_MARKERS = re.compile(rb"^<{7} .*?^={7}\r?$.*?^>{7} ", re.M | re.S)


def secret_name(path: str) -> bool:
    """Tell whether a file's name says that it holds secrets: ``.env``, ``id_rsa``, ``server.key``.

    Parameters:
        path: relative, with ``/``.
    """
    path = path.lower()
    name = path.rpartition("/")[2]
    if name.endswith(_SAMPLES):
        return False
    return any(fnmatchcase(name, pattern) for pattern in _SECRET_NAMES) or any(
        f"/{path}".endswith(f"/{known}") for known in _SECRET_PATHS
    )


def objection(file: bytes, path: str, max_bytes: int) -> str:
    """Return why a file must not be committed, or an empty string.

    Parameters:
        file: the file's absolute path.
        path: its path in the repository.
        max_bytes: the most that a file may hold.
    """
    try:
        found = os.lstat(file)
    except OSError:
        return ""  # it is deleted, and that may be committed
    if not stat.S_ISREG(found.st_mode):
        return ""
    if secret_name(path):
        return "its name says that it holds secrets"
    if found.st_size > max_bytes:
        return f"it holds {found.st_size:,} bytes, more than {max_bytes:,}"
    try:
        fd = os.open(file, os.O_RDONLY | O_NOFOLLOW)
        with os.fdopen(fd, "rb") as source:
            data = source.read(max_bytes + 1)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    if b"<<<<<<< " in data and _MARKERS.search(data):
        return "it has conflict markers"
    return _secret(data)


def _secret(data: bytes) -> str:
    from hookturn.redact import find

    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    text = data.decode(encoding, "replace")
    for finding in find(text):
        if finding.specific:
            line = text.count("\n", 0, finding.start) + 1
            return f"it holds a secret ({finding.rule}, line {line})"
    return ""
