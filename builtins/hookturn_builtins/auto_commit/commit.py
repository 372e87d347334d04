"""One auto-commit: which of the touched paths changed, which stay out, and the commit of exactly the rest.

Every way out is a Result: committed, nothing to do, skipped or failed.
"""

from __future__ import annotations

import os
import re
import stat

from ..console import printable
from . import journal
from .git import Git, Stop, find, paths_file, status
from .message import audit_head, fill, listed, ref_component
from .vet import objection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from . import Config
    from .git import Done, Entry, Repository, Status

SHOWN = 3
"""Paths that a text for the user names."""

_COMMITTED = re.compile(rb"^\[[^\n]*?([0-9a-f]{40}|[0-9a-f]{64})\] ", re.M)
_NOTHING = re.compile(rb"^(nothing to commit|nothing added to commit|no changes added to commit)", re.M)
_IDENTITY = r"^(user|author|committer)\.(name|email)$|^commit\.gpgsign$"


class Request:
    """What is to be committed.

    Parameters:
        project: the project's folder.
        paths: the touched files, absolute or relative to the project.
        session_id: the session.
        turn: number of the turn.
        agent: name of the agent.
        prompts: summaries of the prompts since the last commit, oldest first.
        env: the environment for git.
        state: a private folder for this project's temporary files, outside the checkout.
        dry_run: only say what would be done.
    """

    def __init__(
        self,
        *,
        project: str,
        paths: Sequence[str],
        session_id: str,
        turn: int,
        agent: str,
        prompts: Sequence[str],
        env: Mapping[str, str],
        state: Callable[[], str],
        dry_run: bool = False,
    ) -> None:
        self.project = project
        self.paths = paths
        self.session_id = session_id
        self.turn = turn
        self.agent = agent
        self.prompts = prompts
        self.env = env
        self.state = state
        self.dry_run = dry_run


class Result:
    """What came of it.

    Attributes:
        outcome: ``committed``, ``nothing to do``, ``skipped`` or ``failed``; in a dry run ``would commit``.
        reason: why not, or an empty string.
        commit: the new commit.
        parent: the one before it; an empty string for a root commit.
        ref: the full name of the ref that moved; ``HEAD`` when it is detached.
        target: where it was to go, as in the settings.
        created: whether the ref was made for it.
        paths: the committed files, relative to the repository.
        staged: committed files that the user had staged -> mode and object, for ``hookturn undo``.
        left_out: files that changed and were not committed -> why.
        notes: what else the user should know.
        processes: git processes that it took.
    """

    def __init__(self) -> None:
        self.outcome = "nothing to do"
        self.reason = ""
        self.commit = ""
        self.parent = ""
        self.ref = ""
        self.target = ""
        self.created = False
        self.paths: list[str] = []
        self.staged: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        self.notes: list[str] = []
        self.processes = 0

    def to_json(self) -> dict[str, Any]:
        """Return the record's form."""
        return dict(vars(self))

    def text(self) -> str:
        """Return it in words, for the user."""
        names = listed([printable(path, 60) for path in self.paths], SHOWN)
        if self.outcome == "committed":
            said = f"committed {self.commit[:10]} on {_shown(self.ref)} ({names})"
        elif self.outcome == "would commit":
            said = f"would commit on {_shown(self.ref)} ({names})"
        else:
            said = f"{self.outcome}: {printable(self.reason, 400)}" if self.reason else self.outcome
        parts = [f"auto-commit: {said}."]
        if self.left_out:
            shown = [
                f"{printable(path, 60)} ({printable(why)})"
                for path, why in list(self.left_out.items())[:SHOWN]
            ]
            more = len(self.left_out) - len(shown)
            parts.append(f"Left out: {'; '.join(shown)}{f'; and {more} more' if more else ''}.")
        return " ".join([*parts, *self.notes])


def _shown(ref: str) -> str:
    return "a detached HEAD" if ref == "HEAD" else ref.removeprefix("refs/heads/")


def commit(request: Request, config: Config) -> Result:
    """Commit what the session touched; never raises for anything that can go wrong with a repository."""
    result = Result()
    git = Git(request.project, request.env, timeout=config.timeout, hooks=config.hooks)
    try:
        if not request.paths:
            raise Stop("nothing to do", "no tool changed a file")
        if request.dry_run:
            _Attempt(request, config, git, result).run()
        else:
            with journal.lock(request.project):
                _Attempt(request, config, git, result).run()
    except Stop as stop:
        result.outcome, result.reason = stop.outcome, stop.reason
    except TimeoutError:
        result.outcome, result.reason = "skipped", "another session of this project is committing"
    except OSError as error:
        result.outcome, result.reason = "failed", f"{error.strerror or error}: {error.filename or ''}"
    result.processes = git.processes
    return result


class _Attempt:
    """The steps, in order."""

    def __init__(self, request: Request, config: Config, git: Git, result: Result) -> None:
        self.request = request
        self.config = config
        self.git = git
        self.result = result
        result.target = config.target

    def run(self) -> None:
        git, config, request, result = self.git, self.config, self.request, self.result
        git.check_version()
        ref = config.ref(ref_component(request.session_id))
        repository = find(git, ref)
        if not request.dry_run and not ref:
            repository.wait_for_locks()
        operation = repository.operation()
        if operation:
            raise Stop("skipped", f"{operation} is in progress")
        wanted = self._wanted(repository)
        if ref and not request.dry_run:
            with _Aside(git, repository, ref, request.state(), result):
                self._commit(repository, wanted, status(git), ref)
        else:
            self._commit(repository, wanted, status(git), ref)

    def _commit(self, repository: Repository, wanted: list[bytes], found: Status, ref: str) -> None:
        config, request, result = self.config, self.request, self.result
        if found.unmerged:
            names = listed([printable(os.fsdecode(path), 60) for path in found.unmerged], SHOWN)
            raise Stop("skipped", f"there are unmerged paths ({names})")
        paths = self._changed(repository, wanted, found)
        if len(paths) > config.max_files:
            raise Stop("skipped", f"{len(paths):,} files changed, more than {config.max_files:,}")
        for path in list(paths):
            name = os.fsdecode(path)
            why = objection(os.path.join(os.fsencode(repository.top), path), name, config.max_bytes)
            if why:
                result.left_out[name] = why
                del paths[path]
        if not paths:
            raise Stop(
                "nothing to do", "no other file changed" if result.left_out else "no touched file changed"
            )
        result.paths = [os.fsdecode(path) for path in paths]
        result.ref = ref or (f"refs/heads/{found.branch}" if found.branch else "HEAD")
        result.parent = found.head
        if request.dry_run:
            result.outcome = "would commit"
            return
        settings = self._settings()
        new = [path for path, entry in paths.items() if entry.kind == "?"]
        if new:
            done = self.git.patient("add", "--intent-to-add", "--sparse", pathspec=paths_file(new))
            if done.code:
                self._forget(new)
                raise Stop("failed", f"git add: {done.why}")
        try:
            done = self._git_commit(paths, settings)
        except BaseException:
            self._forget(new)
            raise
        made = _COMMITTED.search(done.out)
        if done.code or made is None:
            self._forget(new)
            result.paths = []
            if _NOTHING.search(done.out):
                raise Stop("nothing to do", "no touched file changed")
            raise Stop("failed", f"git commit: {done.why}")
        if not ref:
            result.staged = {os.fsdecode(path): entry.staged for path, entry in paths.items() if entry.staged}
        result.commit = made[1].decode()
        result.outcome = "committed"

    # -- which files ----------------------------------------------------------------------------

    def _wanted(self, repository: Repository) -> list[bytes]:
        """Return the touched paths as git names them, each once; those of a submodule become the submodule."""
        folders: dict[str, str | None] = {}
        wanted: dict[bytes, None] = {}
        for path in self.request.paths:
            try:
                full = os.path.join(os.path.realpath(self.request.project), path)
                folder, name = os.path.split(os.path.normpath(full))
                if folder not in folders:
                    folders[folder] = _below(repository.top, os.path.realpath(folder))
                below = folders[folder]
                if below is None or not name:
                    self.result.left_out[path] = "it is outside of the repository"
                    continue
                inner = os.path.join(below, name)
                if stat.S_ISDIR(_mode(os.path.join(repository.top, inner))):
                    inner = os.path.join(inner, "")  # only of interest as a submodule
                wanted[_module(repository.top, inner)] = None
            except ValueError:  # a NUL or a lone surrogate
                self.result.left_out[path] = "it cannot be the name of a file"
        return [path for path in wanted if not path.endswith(b"/")]

    def _changed(self, repository: Repository, wanted: list[bytes], found: Status) -> dict[bytes, Entry]:
        """Return the touched paths that differ from the commit to come after."""
        changed: dict[bytes, Entry] = {}
        for path in wanted:
            entry = found.entries.get(path)
            if entry is None:
                if path + b"/" in found.entries:
                    self.result.left_out[os.fsdecode(path)] = "it is another repository"
                continue
            if entry.kind == "?" and entry.change and self.config.target == "current":
                self.result.left_out[os.fsdecode(path)] = "it was taken out of the index"
            elif entry.submodule and entry.mode == "000000":
                self.result.left_out[os.fsdecode(path)] = "it is a new submodule"
            elif (entry.kind == "?" or "." not in entry.change) and _same(repository.top, path, entry):
                continue  # differs from the user's index only
            else:
                changed[path] = entry
        return changed

    # -- git --------------------------------------------------------------------------------------

    def _settings(self) -> list[str]:
        """Return the settings for the commit: a fallback identity where there is none, and about signatures."""
        done = self.git.run("config", "-z", "--get-regexp", _IDENTITY, reads=True)
        known: dict[str, str] = {}
        for item in done.out.decode("utf-8", "replace").split("\0"):
            name, _, value = item.partition("\n")
            known[name] = value if "\n" in item else "true"
        settings = ["core.abbrev=no", "i18n.commitEncoding=UTF-8"]
        for part, fallback in (("name", self.config.name), ("email", self.config.email)):
            own = known.get(f"user.{part}") or (
                known.get(f"author.{part}") and known.get(f"committer.{part}")
            )
            if not own and not (part == "email" and self.request.env.get("EMAIL")):
                settings.append(f"user.{part}={fallback}")
        if known.get("commit.gpgsign", "").lower() in ("true", "yes", "on", "1") and not self.config.sign:
            self.result.notes.append("It is not signed, though commit.gpgsign is set (see the option sign).")
        return settings

    def _git_commit(self, paths: dict[bytes, Entry], settings: list[str]) -> Done:
        words = ["commit", "--only", "--file=-", "--cleanup=verbatim", "--no-status"]
        if not self.config.sign:
            words.append("--no-gpg-sign")
        return self.git.patient(*words, stdin=self._message(), pathspec=paths_file(paths), config=settings)

    def _message(self) -> bytes:
        request, result = self.request, self.result
        files = listed([printable(os.path.basename(path), 40) for path in result.paths])
        values = {
            "summary": request.prompts[-1] if request.prompts else f"Edit {files}",
            "prompts": "\n".join(f"- {prompt}" for prompt in request.prompts),
            "files": files,
            "count": str(len(result.paths)),
            "turn": str(request.turn),
            "session": ref_component(request.session_id),
            "agent": printable(request.agent, 80),
        }
        trailers = {
            "Hookturn-Session": values["session"],
            "Hookturn-Turn": values["turn"],
            "Hookturn-Audit-Head": audit_head(request.project),
        }
        return fill(self.config.message, values, trailers)

    def _forget(self, new: list[bytes]) -> None:
        """Take paths out of the index again that were put there for a commit that was not made."""
        if not new or self.result.target != "current":
            return  # an index of our own goes anyway
        self.git.more_time(5)
        try:
            done = self.git.run("update-index", "--force-remove", "-z", "--stdin", stdin=paths_file(new))
            problem = done.why if done.code else ""
        except Stop as stop:
            problem = stop.reason
        if problem:
            names = listed([printable(os.fsdecode(path), 60) for path in new])
            self.result.notes.append(f"New files stay in the index without content ({names}): {problem}.")


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0  # deleted


def _below(top: str, folder: str) -> str | None:
    """Return a folder relative to the top, or None when it is outside."""
    if folder == top:
        return ""
    prefix = top if top.endswith(os.sep) else top + os.sep
    return folder[len(prefix) :] if folder.startswith(prefix) else None


def _module(top: str, path: str) -> bytes:
    """Return the outermost repository inside this one that a path lies in, else the path itself."""
    for found in re.finditer(r"/", path):
        inner = path[: found.start()]
        if os.path.lexists(os.path.join(top, inner, ".git")):
            return os.fsencode(inner)
    return os.fsencode(path)


def _same(top: str, path: bytes, entry: Entry) -> bool:
    """Tell whether a file is as in HEAD, though the index is not: git compares with the index only."""
    file = os.path.join(os.fsencode(top), path)
    try:
        found = os.lstat(file)
        if stat.S_ISLNK(found.st_mode):
            data, mode = os.readlink(file), "120000"
        elif stat.S_ISREG(found.st_mode):
            mode = "100755" if found.st_mode & 0o100 else "100644"
            with open(file, "rb") as source:
                data = source.read()
        else:
            return False
    except OSError:
        return False
    from hashlib import sha1, sha256

    digest = (sha1 if len(entry.head) == 40 else sha256)(b"blob %d\0" % len(data))
    digest.update(data)
    return mode == entry.mode and digest.hexdigest() == entry.head


class _Aside:
    """A git directory of its own, like a linked working tree's, whose HEAD is another ref and whose index is a copy.

    ``git commit`` then works as ever, and the user's branch and index are not touched. Nothing but the ref and
    the commit's objects stays.
    """

    def __init__(self, git: Git, repository: Repository, ref: str, state: str, result: Result) -> None:
        self.git = git
        self.repository = repository
        self.ref = ref
        self.folder = os.path.join(state, "auto-commit")
        self.result = result

    def __enter__(self) -> None:
        from shutil import copy2, rmtree

        from hookturn.paths import private_dir, write_private

        user = self.repository.checked_out(self.ref)
        if user:
            raise Stop("skipped", f"{_shown(self.ref)} is checked out ({user})")
        if not self.repository.tip:
            done = self.git.patient("update-ref", "--create-reflog", self.ref, "HEAD", "")
            # Without a first commit there is nothing to begin at: this one has no parent then.
            if done.code and "not a valid SHA1" not in done.error:
                raise Stop("failed", f"git update-ref: {done.why}")
            self.result.created = True
        rmtree(self.folder, ignore_errors=True)  # of a process that was killed
        private_dir(self.folder)
        write_private(os.path.join(self.folder, "HEAD"), f"ref: {self.ref}\n".encode())
        write_private(os.path.join(self.folder, "commondir"), os.fsencode(self.repository.common_dir) + b"\n")
        for name in ("index", "config.worktree"):
            source = os.path.join(self.repository.git_dir, name)
            if os.path.exists(source):
                # With its time: by that git knows of which files it must compare the contents, for they changed in
                # the very moment in which the index was written (gitformat-index(5), "racy Git").
                copy2(source, os.path.join(self.folder, name))
        self.git.use(self.folder, self.repository.top)

    def __exit__(self, *error: object) -> None:
        from shutil import rmtree

        if self.result.created and self.result.outcome != "committed":
            self.result.created = False
            self.git.more_time(5)
            self.git.run("update-ref", "-d", self.ref)
        rmtree(self.folder, ignore_errors=True)
