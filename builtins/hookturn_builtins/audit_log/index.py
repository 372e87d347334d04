"""A SQLite index of a trail, to find records quickly. It holds nothing that the trail does not: delete it at will.

It lies in the user's state folder, beside the trail's anchors, so a trail on
read-only media has one, too; where that folder cannot be written, it is built
in memory. It only says where records are; what is shown is read from the trail.
"""

from __future__ import annotations

import os
from hashlib import sha256

from hookturn.paths import FileLock, open_private, private_dir, refuse_links

from .anchors import Anchors
from .reading import files, lines, record_of, sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

VERSION = 1
FILE = "index.sqlite"

_PROBE = 4096  # bytes at a file's beginning by which it is known again under another name

_SCHEMA = """
CREATE TABLE file (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, inode INTEGER NOT NULL, place INTEGER NOT NULL,
    size INTEGER NOT NULL, mtime INTEGER NOT NULL, probe INTEGER NOT NULL, begins TEXT NOT NULL, last INTEGER NOT NULL, ends TEXT NOT NULL
);
CREATE TABLE record (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, at INTEGER NOT NULL, length INTEGER NOT NULL, time TEXT,
    timing TEXT, session TEXT, tool TEXT, kind TEXT, decision TEXT, status TEXT, decider TEXT, failures INTEGER
);
CREATE TABLE hook (record INTEGER NOT NULL, name TEXT NOT NULL);
CREATE INDEX record_file ON record (file, at);
CREATE INDEX record_session ON record (session);
CREATE INDEX record_time ON record (time);
CREATE INDEX hook_name ON hook (name, record);
CREATE INDEX hook_record ON hook (record);
"""


class Filters:
    """What records to find; empty fields ask for nothing. ``*`` in a text stands for anything.

    Parameters:
        session: the session's id.
        tool: the tool's own name, or its kind.
        decision: the decision, or the status of a tool call's end.
        hook: a hook that answered, failed, decided, rewrote or was overruled.
        timing: the timing.
        since, until: times as the trail writes them; since is included, until is not.
        text: any text of the record has this in it, whatever the case.
    """

    def __init__(
        self,
        *,
        session: str = "",
        tool: str = "",
        decision: str = "",
        hook: str = "",
        timing: str = "",
        since: str = "",
        until: str = "",
        text: str = "",
    ) -> None:
        self.session = session
        self.tool = tool
        self.decision = decision
        self.hook = hook
        self.timing = timing
        self.since = since
        self.until = until
        self.text = text

    def __bool__(self) -> bool:
        return any(vars(self).values())

    def where(self) -> tuple[str, list[str]]:
        """Return the SQL condition, and its values; the text is not in it."""
        terms = []
        values = []
        for columns, wanted in (
            (("session",), self.session),
            (("tool", "kind"), self.tool),
            (("decision", "status"), self.decision),
            (("timing",), self.timing),
        ):
            if wanted:
                terms.append("(" + " OR ".join(f"{column} {_like(wanted)}" for column in columns) + ")")
                values += [_pattern(wanted)] * len(columns)
        if self.hook:
            terms.append(f"record.id IN (SELECT record FROM hook WHERE name {_like(self.hook)})")  # noqa: S608
            values.append(_pattern(self.hook))
        if self.since:
            terms.append("time >= ?")
            values.append(self.since)
        if self.until:
            terms.append("time < ?")
            values.append(self.until)
        return " AND ".join(terms) or "1", values

    def has_text(self, line: bytes, record: dict[str, Any]) -> bool:
        """Tell whether a record has the text in it."""
        if not self.text:
            return True
        wanted = self.text.casefold()
        plain = self.text.isascii() and self.text.isprintable() and not set(self.text) & {'"', "\\"}
        if plain and b"\\u" not in line and wanted.encode("ascii") not in line.lower():
            return False  # such a text stands in such a line as it is
        return any(wanted in text.casefold() for text in _texts(record))


def _like(wanted: str) -> str:
    return "GLOB ?" if "*" in wanted else "= ?"


def _pattern(wanted: str) -> str:
    wanted = _storable(wanted)
    return wanted.replace("[", "[[]").replace("?", "[?]") if "*" in wanted else wanted


def _storable(text: str) -> str:
    """Return a text that SQLite takes: lone surrogates escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def search(path: str, filters: Filters, limit: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the records that fit, oldest first.

    Parameters:
        path: the trail's file.
        filters: what to find.
        limit: only this many of the newest; 0 for all.

    Raises:
        OSError: when the trail cannot be read.
    """
    if not filters and not limit:
        yield from _records(path)
        return
    where, values = filters.where()
    most = limit if limit and not filters.text else -1

    def find(db: sqlite3.Connection) -> _Places:
        return _Places(db, where, values, most)

    places = look_up(path, find)
    if limit and filters.text:
        found = []
        for record in places.read(path, filters, newest_first=True):
            found.append(record)
            if len(found) == limit:
                break
        yield from reversed(found)
    else:
        yield from places.read(path, filters)


def _records(path: str) -> Iterator[dict[str, Any]]:
    for line in lines(path):
        record = record_of(line)
        if record is not None:
            yield record


class _Places:
    """Where the records that fit are, newest first; in a few bytes each, for there may be millions."""

    def __init__(self, db: sqlite3.Connection, where: str, values: list[str], most: int) -> None:
        from array import array

        self.inodes: dict[int, int] = dict(db.execute("SELECT id, inode FROM file"))
        self.files, self.at, self.lengths = array("q"), array("q"), array("q")
        query = (
            "SELECT record.file, record.at, record.length FROM record JOIN file ON file.id = record.file "  # noqa: S608
            f"WHERE {where} ORDER BY file.place DESC, record.at DESC LIMIT ?"
        )
        for file, at, length in db.execute(query, [*values, most]):
            self.files.append(file)
            self.at.append(at)
            self.lengths.append(length)

    def read(self, path: str, filters: Filters, *, newest_first: bool = False) -> Iterator[dict[str, Any]]:
        """Read the records from the trail's files; a line that is gone or damaged meanwhile is left out."""
        order = range(len(self.at))
        source: BinaryIO | None = None
        current = -1
        try:
            for place in order if newest_first else reversed(order):
                if self.files[place] != current:
                    current = self.files[place]
                    if source is not None:
                        source.close()
                    source = _open(path, self.inodes[current])
                if source is None:
                    continue
                source.seek(self.at[place])
                line = source.read(self.lengths[place])
                record = record_of(line)
                if record is not None and filters.has_text(line, record):
                    yield record
        finally:
            if source is not None:
                source.close()


def _open(path: str, inode: int) -> BinaryIO | None:
    """Open one of a trail's files, whatever its name is by now; None when it is gone."""
    for _ in range(2):  # it may get another name while we look
        for file in reversed(files(path)):
            try:
                source = open(file, "rb")  # noqa: SIM115
            except FileNotFoundError:
                continue
            if os.fstat(source.fileno()).st_ino == inode:
                return source
            source.close()
    return None


def figures(path: str, filters: Filters) -> dict[str, Any]:
    """Return counts of the records that fit, the largest first; the filters' text is not asked for.

    Parameters:
        path: the trail's file.
        filters: what to count.

    Raises:
        OSError: when the trail cannot be read.
    """
    where, values = filters.where()

    def ask(db: sqlite3.Connection) -> dict[str, Any]:
        def by(column: str, source: str = "record") -> dict[str, int]:
            query = f"SELECT {column}, count(*) AS n FROM {source} WHERE {where} AND {column} IS NOT NULL "  # noqa: S608
            return dict(db.execute(f"{query} GROUP BY {column} ORDER BY n DESC, {column}", values))

        sums = (
            "count(*), count(DISTINCT session), min(time), max(time), coalesce(sum(length + 1), 0), "
            "coalesce(sum(failures), 0)"
        )
        [row] = db.execute(f"SELECT {sums} FROM record WHERE {where}", values)  # noqa: S608
        names = ("records", "sessions", "first", "last", "bytes", "failures")
        return {
            **dict(zip(names, row, strict=True)),
            "by_timing": by("timing"),
            "by_decision": by("decision"),
            "by_status": by("status"),
            "by_tool": by("tool"),
            "by_hook": by("name", "hook JOIN record ON record.id = hook.record"),
        }

    found: dict[str, Any] = look_up(path, ask)
    return found


def look_up(path: str, question: Callable[[sqlite3.Connection], Any]) -> Any:
    """Bring a trail's index up to date, ask it, and return the answer.

    A damaged index, or one of another version, is made anew; where none can be
    written, one is made in memory.

    Parameters:
        path: the trail's file.
        question: gets the connection; everything must be read when it returns.

    Raises:
        OSError: when the trail cannot be read.
    """
    import sqlite3

    path = os.path.abspath(path)
    folder = Anchors(path).folder
    try:
        private_dir(folder)
        with FileLock(os.path.join(folder, "index.lock"), timeout=60):
            for _ in range(2):
                try:
                    return _ask(os.path.join(folder, FILE), path, question)
                except sqlite3.Error:
                    _remove(folder)
    except OSError:
        # No place for it, or not ours alone; whether the trail can be read shows below.
        pass
    return _ask(":memory:", path, question)


def _ask(file: str, path: str, question: Callable[[sqlite3.Connection], Any]) -> Any:
    import sqlite3

    if file != ":memory:":
        refuse_links(file)
        os.close(open_private(file, os.O_RDWR | os.O_CREAT))
    db = sqlite3.connect(file, isolation_level=None)
    try:
        db.execute("BEGIN IMMEDIATE")
        [(version,)] = db.execute("PRAGMA user_version")
        if version != VERSION:
            if version or db.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise sqlite3.DatabaseError(f"index version {version}")
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")
        _refresh(db, path)
        db.execute("COMMIT")
        return question(db)
    finally:
        db.close()


def _remove(folder: str) -> None:
    for name in (FILE, f"{FILE}-journal"):
        try:
            os.unlink(os.path.join(folder, name))
        except FileNotFoundError:
            continue


# -- bringing it up to date -------------------------------------------------------------------------


def _refresh(db: sqlite3.Connection, path: str) -> None:
    rows = db.execute("SELECT * FROM file")
    columns = [column[0] for column in rows.description]
    known = [dict(zip(columns, row, strict=True)) for row in rows]
    for place, (file, source) in enumerate(sources(path)):
        found = os.fstat(source.fileno())
        name = os.path.basename(file)
        same = {"name": name, "size": found.st_size, "mtime": found.st_mtime_ns}
        old = next((row for row in known if row.items() >= same.items()), None)
        if old is None:
            old = next((row for row in known if _continues(source, found, row)), None)
        if old is not None:
            known.remove(old)
        _index(db, source, found, name, place, old)
    for row in known:
        _forget(db, row["id"])


def _continues(source: BinaryIO, found: os.stat_result, row: dict[str, Any]) -> bool:
    """Tell whether a file is a known one under another name, or with more lines."""
    if found.st_size < row["size"] or (found.st_size == row["size"] and found.st_mtime_ns != row["mtime"]):
        return False
    source.seek(0)
    if sha256(source.read(row["probe"])).hexdigest() != row["begins"]:
        return False
    source.seek(row["last"])
    ends: str = row["ends"]
    return sha256(source.read(row["size"] - row["last"])).hexdigest() == ends


def _forget(db: sqlite3.Connection, file: int) -> None:
    db.execute("DELETE FROM hook WHERE record IN (SELECT id FROM record WHERE file = ?)", (file,))
    db.execute("DELETE FROM record WHERE file = ?", (file,))
    db.execute("DELETE FROM file WHERE id = ?", (file,))


def _index(
    db: sqlite3.Connection,
    source: BinaryIO,
    found: os.stat_result,
    name: str,
    place: int,
    old: dict[str, Any] | None,
) -> None:
    """Index what a file has beyond its known part."""
    if old is not None:
        changes = (name, found.st_ino, place, old["id"])
        db.execute("UPDATE file SET name = ?, inode = ?, place = ? WHERE id = ?", changes)
        if old["size"] == found.st_size:
            return
    at = last = old["size"] if old is not None else 0
    [(file,)] = db.execute("SELECT coalesce(max(id), 0) + 1 FROM file") if old is None else [(old["id"],)]
    [(record,)] = db.execute("SELECT coalesce(max(id), 0) FROM record")
    rows: list[tuple[Any, ...]] = []
    hooks: list[tuple[int, str]] = []
    ending = b""
    source.seek(at)
    for line in source:
        if not line.endswith(b"\n") or at + len(line) > found.st_size:
            break  # being written
        data = record_of(line)
        if data is not None:
            record += 1
            rows.append((record, file, at, len(line) - 1, *_columns(data)))
            hooks += [(record, hook) for hook in _hooks(data)]
        last, ending = at, line
        at += len(line)
        if len(rows) >= 1000:
            _insert(db, rows, hooks)
    _insert(db, rows, hooks)
    if not ending:
        return
    probe = min(_PROBE, at)
    source.seek(0)
    begins = sha256(source.read(probe)).hexdigest()
    ends = sha256(ending).hexdigest()
    db.execute(
        "INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (file, name, found.st_ino, place, at, found.st_mtime_ns, probe, begins, last, ends),
    )


def _insert(db: sqlite3.Connection, rows: list[tuple[Any, ...]], hooks: list[tuple[int, str]]) -> None:
    db.executemany("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    db.executemany("INSERT INTO hook VALUES (?, ?)", hooks)
    rows.clear()
    hooks.clear()


def _columns(record: dict[str, Any]) -> tuple[Any, ...]:
    names = ("time", "timing", "session_id", "tool", "kind", "decision", "status", "by")
    return (*(_text(record.get(name)) for name in names), len(_dicts(record, "failures")))


def _hooks(record: dict[str, Any]) -> set[str]:
    """Return the names of the hooks that had a part in a record."""
    found = {_text(record.get("by"))}
    for field, key in (("hooks", "name"), ("failures", "hook"), ("rewrites", "by"), ("overruled", "by")):
        found |= {_text(item.get(key)) for item in _dicts(record, field)}
    return {name for name in found if name}


def _dicts(record: dict[str, Any], field: str) -> list[dict[str, Any]]:
    value = record.get(field)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return _storable(value) if isinstance(value, str) else None
