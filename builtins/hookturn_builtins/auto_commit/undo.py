"""Takes the last auto-commit back: the branch, and the index where the commit had changed it, are as before it.

Files keep their content unless ``discard`` is asked for, and only those that nobody changed since. What cannot be
undone without losing something is refused, with the reason.
"""

from __future__ import annotations

import os
import re

from hookturn import HookturnError
from hookturn.paths import hookturn_dir

from ..console import printable
from ..places import session_name
from . import journal
from .git import Git, Stop, find, paths_file, status
from .message import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .git import Done, Repository

TIMEOUT = 60.0

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"refs/(hookturn|heads)(/(?!\.)[A-Za-z0-9._-]+)+")
_STAGED = re.compile(r"(100644|100755|120000) ([0-9a-f]{40}|[0-9a-f]{64})")
_EMPTY = {40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
          64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"}  # fmt: skip


class Undone:
    """What was undone, or in a dry run would be.

    Attributes:
        commit: the commit that was taken back; it stays in the repository until git cleans up.
        parent: where the ref stands now; an empty string for nowhere.
        ref: the ref that moved.
        paths: the files of the commit.
        kept_staged: those of them that were staged since, and stay so.
        discarded: whether the files were put back, too.
        dry_run: whether nothing was done.
    """

    def __init__(self, commit: str, parent: str, ref: str) -> None:
        self.commit = commit
        self.parent = parent
        self.ref = ref
        self.paths: list[str] = []
        self.kept_staged: list[str] = []
        self.discarded = False
        self.dry_run = False


def undo(
    project: str, env: Mapping[str, str], *, session: str = "", discard: bool = False, dry_run: bool = False
) -> Undone:
    """Take the last auto-commit back.

    Parameters:
        project: the project's folder.
        env: the environment for git.
        session: only one of this session.
        discard: put the files back as they were in the commit before, too.
        dry_run: only find out what would be done.

    Raises:
        HookturnError: when it cannot be done; then nothing was.
    """
    git = Git(project, env, timeout=TIMEOUT)
    try:
        with journal.lock(project):
            record = _last(project, session)
            git.check_version()
            repository = find(git)
            repository.wait_for_locks()
            step = _Step(git, repository, record, discard)
            done = step.prepare()
            if dry_run:
                done.dry_run = True
                return done
            step.carry_out()
            journal.append(
                str(hookturn_dir(project)),
                {"session_id": record.get("session_id", ""), "outcome": "undone", **vars(done)},
            )
            return done
    except Stop as stop:
        raise HookturnError(f"nothing was undone: {stop.reason}") from stop
    except TimeoutError as error:
        raise HookturnError("nothing was undone: a session of this project is committing") from error


def _last(project: str, session: str) -> Mapping[str, Any]:
    """Return the record of the newest commit that was not undone."""
    undone: set[Any] = set()
    record: Mapping[str, Any]
    for record in reversed(journal.read(os.path.join(project, ".hookturn"))):
        if session and record.get("session_id") not in (session, session_name(session)):
            continue
        commit, ref = record.get("commit"), record.get("ref")
        if record.get("outcome") == "undone":
            undone.add(commit)
            continue
        # The file may come from anywhere: what it says is used only where it can do no harm.
        if record.get("outcome") != "committed" or not isinstance(commit, str) or not isinstance(ref, str):
            continue
        if _COMMIT.fullmatch(commit) and commit not in undone:
            return record
    where = f" of session {printable(session, 80)}" if session else ""
    raise Stop("skipped", f"there is no auto-commit{where} to undo")


class _Step:
    def __init__(self, git: Git, repository: Repository, record: Mapping[str, Any], discard: bool) -> None:
        self.git = git
        self.repository = repository
        self.commit: str = record["commit"]
        self.current = record.get("target") == "current"
        self.recorded: str = record["ref"]
        self.created = record.get("created") is True
        self.before: Any = record.get("staged")
        self.discard = discard
        self.reset: list[bytes] = []
        self.paths: list[bytes] = []
        self.done = Undone(self.commit, "", self.recorded)

    def prepare(self) -> Undone:
        """Check that it can be done, and find out what it takes.

        Raises:
            Stop: when it cannot.
        """
        done, git, short = self.done, self.git, self.commit[:10]
        if self.current:
            ref = "HEAD"
            self._check_current()
        else:
            ref = self.recorded
            if not _REF.fullmatch(ref) or ".." in ref:
                raise Stop("skipped", f"{printable(ref, 80)} is no ref of an auto-commit")
            if self.discard:
                raise Stop(
                    "skipped", f"it is not on your branch; `git restore --source={short}^` gives its files"
                )
            user = self.repository.checked_out(ref)
            if user:
                raise Stop("skipped", f"{ref} is checked out ({user})")
        found = git.run("rev-list", "--parents", "--max-count=1", ref, "--", reads=True)
        commits = found.out.decode().split()
        if found.code or not commits:
            raise Stop("skipped", f"{ref} has no commit ({found.why})")
        if commits[0] != self.commit:
            raise Stop(
                "skipped",
                f"{ref} is at {commits[0][:10]}, not at the auto-commit {short}: something else came after it; "
                f"`git revert {short}` takes its changes back",
            )
        if len(commits) > 2:
            raise Stop("skipped", f"{short} is a merge")
        done.parent = commits[1] if len(commits) > 1 else ""
        pushed = git.checked(
            "for-each-ref", "--format=%(refname:short)", f"--contains={self.commit}", "refs/remotes"
        ).decode("utf-8", "replace").split()  # fmt: skip
        if pushed:
            raise Stop(
                "skipped",
                f"{short} was pushed ({printable(pushed[0], 80)} has it); `git revert {short}` takes its changes back",
            )
        self.paths = self._names("diff-tree", "-r", "--root", "--no-commit-id", self.commit)
        done.paths = [os.fsdecode(path) for path in self.paths]
        if self.current:
            self._check_files()
        elif self.created and self.recorded.startswith("refs/hookturn/"):
            done.parent = ""  # the ref was made for it and goes with it
        return done

    def _check_current(self) -> None:
        operation = self.repository.operation()
        if operation:
            raise Stop("skipped", f"{operation} is in progress")
        found = status(self.git)
        if found.unmerged:
            raise Stop("skipped", "there are unmerged paths")
        here = f"refs/heads/{found.branch}" if found.branch else "HEAD"
        if here != self.recorded:
            raise Stop(
                "skipped",
                f"it was made on {_place(self.recorded)}, and now {_place(here)} is checked out",
            )

    def _check_files(self) -> None:
        """Tell the files that were staged or changed since from those that are as the commit left them."""
        done = self.done
        ours = set(self.paths)
        staged = ours & set(self._names("diff-index", "--cached", self.commit, "--"))
        done.kept_staged = sorted(os.fsdecode(path) for path in staged)
        self.reset = [path for path in self.paths if path not in staged]
        if not done.parent and self.recorded == "HEAD":
            raise Stop("skipped", "it is the first commit, and HEAD is detached")
        if self.discard:
            changed = ours & set(
                self._names("diff", "--no-ext-diff", "--ignore-submodules=dirty", self.commit, "--")
            )
            top = os.fsencode(self.repository.top)
            gone = self._names("diff-tree", "-r", "--root", "--no-commit-id", "--diff-filter=D", self.commit)
            changed |= {path for path in gone if os.path.lexists(os.path.join(top, path))} | staged
            if changed:
                names = listed([printable(os.fsdecode(path), 60) for path in sorted(changed)])
                raise Stop("skipped", f"changed since the commit, and would be lost: {names}")
            done.discarded = True

    def _names(self, *words: str) -> list[bytes]:
        options = ("-z", "--name-only", "--no-renames")
        out = self.git.checked(words[0], *options, *words[1:])
        return [path for path in out.split(b"\0") if path]

    def carry_out(self) -> None:
        """Move the ref, then the index or the files; a step that fails leaves all as it was.

        Raises:
            Stop: when a step failed.
        """
        parent = self.done.parent
        ref = "HEAD" if self.current else self.recorded
        self._move(ref, parent, self.commit)
        if not self.current:
            return
        if self.discard:
            source = parent or _EMPTY[len(self.commit)]
            words, paths = ["restore", f"--source={source}", "--staged", "--worktree"], self.paths
        else:
            words, paths = ["reset", "--quiet"], self.reset
        if not paths:
            return
        try:
            done = self.git.patient(*words, pathspec=paths_file(paths))
            if not done.code and self.before:
                words, done = ["update-index"], self._stage()
            if done.code:
                raise Stop("failed", f"git {words[0]}: {done.why}")
        except BaseException:
            self._move(ref, self.commit, parent)
            raise

    def _stage(self) -> Done:
        """Put into the index again what the user had staged before the commit, as far as git still has it."""
        entries = self.before if isinstance(self.before, dict) else {}
        lines: dict[str, bytes] = {}
        for path in self.reset:
            staged = _STAGED.fullmatch(str(entries.get(os.fsdecode(path))))
            if staged:
                lines[staged[2]] = lines.get(staged[2], b"") + staged[0].encode() + b"\t" + path + b"\0"
        known = self.git.checked(
            "cat-file", "--batch-check", stdin="".join(f"{name}\n" for name in lines).encode()
        )
        kept = {line.split()[0].decode() for line in known.splitlines() if line.split()[1:2] == [b"blob"]}
        data = b"".join(line for name, line in lines.items() if name in kept)
        return self.git.patient("update-index", "-z", "--index-info", stdin=data)

    def _move(self, ref: str, to: str, at: str) -> None:
        """Move a ref, if it still is where it was."""
        none = "0" * len(self.commit)
        words = ["-m", "hookturn undo", ref, to, at or none] if to else ["-d", ref, at]
        done = self.git.patient("update-ref", *words)
        if done.code:
            raise Stop("failed", f"git update-ref: {done.why}")


def _place(ref: str) -> str:
    return "a detached HEAD" if ref == "HEAD" else printable(ref.removeprefix("refs/heads/"), 80)
