"""Commits what the session's tools changed, every few turns, and nothing else; ``hookturn undo`` takes it back.

Off until a configuration names it.
"""

from __future__ import annotations

import os
import re
from typing import Literal

from hookturn import Warn, hookimpl

from ..places import in_project, session_name
from ..remembered import Remembered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from hookturn import Answer, Context
    from hookturn.events import PostToolExecution, SessionStart, TurnComplete, TurnStart, UserPromptSubmit

MAX_TOUCHED = 20_000
"""Touched paths that wait for a commit; more are not remembered, and said so."""

MAX_PROMPTS = 20

_BRANCH = re.compile(r"(?!-)[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


class Config:
    """Settings of auto-commit.

    Attributes:
        every: commit at the end of every so many turns.
        include_shell: commit also what shell commands changed, if it was clean when the turn began.
        target: ``current`` (the branch that is checked out), ``branch`` (another one, see ``branch``) or
            ``session`` (``refs/hookturn/<session>``, which no branch list shows). Only ``current`` moves the
            user's branch.
        branch: the other branch's name; ``{session}`` in it is the session's.
        message: the commit's message; may name {summary}, {prompts}, {files}, {count}, {turn}, {session}, {agent}.
        hooks: run the repository's own git hooks.
        sign: sign where git's configuration says so; else commits are not signed.
        timeout: seconds that one commit may take.
        max_bytes: larger files are left out.
        max_files: with more changed files, nothing is committed.
        name: the author where git's configuration names none.
        email: the author's address where git's configuration has none.
    """

    every: int = 5
    include_shell: bool = False
    target: Literal["current", "branch", "session"] = "current"
    branch: str = "hookturn/{session}"
    message: str = "{summary}"
    hooks: bool = False
    sign: bool = False
    timeout: float = 20.0
    max_bytes: int = 10_000_000
    max_files: int = 5000
    name: str = "hookturn auto-commit"
    email: str = "auto-commit@hookturn.invalid"

    def validate(self) -> None:
        """Refuse values that cannot work.

        Raises:
            ValueError: naming the setting.
        """
        from .message import WORDS, unknown_words

        if self.every < 1:
            raise ValueError("every must be at least 1 turn")
        if not 0 < self.timeout <= 3600:
            raise ValueError("timeout must be a number of seconds up to 3600")
        if self.max_bytes < 1 or self.max_files < 1:
            raise ValueError("max_bytes and max_files must be at least 1")
        name = self.branch.replace("{session}", "s")
        if not _BRANCH.fullmatch(name) or ".." in name or any(
            part.endswith((".", ".lock")) for part in name.split("/")
        ):  # fmt: skip
            raise ValueError(f"branch: {self.branch!r} is no name for a branch")
        unknown = unknown_words(self.message)
        if unknown:
            raise ValueError(f"message: unknown word {{{unknown[0]}}}; one of {', '.join(WORDS)}")
        for value in (self.name, self.email):
            if not value.strip() or not value.isprintable() or set("<>") & set(value):
                raise ValueError(f"name and email must be what git takes, got {value!r}")

    def ref(self, session: str) -> str:
        """Return the full name of the ref that is written to, or an empty string for the current branch.

        Parameters:
            session: the session's id as a safe component.
        """
        if self.target == "session":
            return f"refs/hookturn/{session}"
        if self.target == "branch":
            return f"refs/heads/{self.branch.replace('{session}', session)}"
        return ""


class AutoCommit:
    """The plugin.

    Parameters:
        config: its settings.
    """

    hookturn_name = "auto-commit"

    def __init__(self, config: Config) -> None:
        self.config = config
        self._remembered = Remembered()

    @hookimpl
    def on_session_start(self, event: SessionStart, ctx: Context) -> Answer | None:
        """Tell early when git is missing or too old."""
        from .git import Stop

        if event.dry_run:
            return None
        try:
            self._git(ctx).check_version()
        except Stop as stop:
            return Warn(f"auto-commit: it will do nothing: {stop.reason}.")
        return None

    @hookimpl
    def on_user_prompt_submit(self, event: UserPromptSubmit, ctx: Context) -> None:
        """Keep the prompt's summary for the message."""
        from .message import summary

        line = summary(event.prompt)
        if line:
            with self._remembered.change(ctx) as state:
                state["prompts"] = [*state.get("prompts", []), line][-MAX_PROMPTS:]

    @hookimpl
    def on_turn_start(self, event: TurnStart, ctx: Context) -> None:
        """Note what is changed already: of the rest, shell commands' changes are the session's."""
        if self.config.include_shell and not event.agent_id and not event.dry_run:
            changed = self._changed(ctx)
            with self._remembered.change(ctx) as state:
                state["dirty"] = changed
                state["shell"] = False

    @hookimpl(tools=["write", "bash"])
    def post_tool_execution(self, event: PostToolExecution, ctx: Context) -> None:
        """Note the files that a write tool touched, even where it failed: it may have begun."""
        if event.status in ("denied", "replied"):
            return
        if event.kind == "write":
            with self._remembered.change(ctx) as state:
                _touch(state, _absolute(event.paths, event.cwd))
        elif self.config.include_shell:
            with self._remembered.change(ctx) as state:
                state["shell"] = True

    @hookimpl(trylast=True)
    def on_turn_complete(self, event: TurnComplete, ctx: Context) -> list[Answer] | None:
        """Commit, if it is time."""
        said = self._complete(event, ctx)
        notice = self._remembered.notice()
        if notice:
            ctx.log.warning("{}", notice)
        answers: list[Answer] = [Warn(f"auto-commit: {notice}")] if notice else []
        return [*answers, *([said] if said is not None else [])] or None

    def _complete(self, event: TurnComplete, ctx: Context) -> Answer | None:
        shell = self._shell(event, ctx)
        with self._remembered.change(ctx) as state:
            _touch(state, [*_absolute(event.edited_files, event.cwd), *shell])
            if event.agent_id:
                return None  # the turn that it is part of goes on
            if not event.continued:  # else it was counted already
                state["since"] = state.get("since", 0) + 1
            if state.get("since", 0) < self.config.every:
                return None
            state["since"] = 0
            touched = dict(state.get("touched", {}))
            prompts = list(state.get("prompts", []))
            dropped = state.pop("dropped", 0)
        return self._commit(event, ctx, touched, prompts, dropped)

    def _commit(
        self, event: TurnComplete, ctx: Context, touched: dict[str, int], prompts: list[str], dropped: int
    ) -> Answer | None:
        from .commit import Request, commit

        request = Request(
            project=ctx.project_dir,
            paths=list(touched),
            session_id=event.session_id,
            turn=event.turn,
            agent=event.agent,
            prompts=prompts,
            env=_env(ctx),
            state=lambda: _state(ctx.project_dir),
            dry_run=event.dry_run,
        )
        result = commit(request, self.config)
        if dropped:
            result.notes.append(f"{dropped:,} touched files were too many to remember.")
        if result.outcome in ("committed", "nothing to do", "would commit"):
            with self._remembered.change(ctx) as state:
                kept = state.get("touched", {})
                # What another tool touched meanwhile waits for the next time.
                state["touched"] = {path: n for path, n in kept.items() if n != touched.get(path)}
                state["prompts"] = state.get("prompts", [])[len(prompts) :]
        self._record(event, ctx, result)
        text = result.text()
        if result.outcome == "nothing to do" and not touched and not dropped:
            ctx.log.debug("{}", text)  # a turn of talk is no news
            return None
        if result.outcome in ("skipped", "failed"):
            ctx.log.warning("{}", text)
        else:
            ctx.log.info("{}", text)
        return Warn(text)

    def _record(self, event: TurnComplete, ctx: Context, result: Any) -> None:
        from hookturn.paths import hookturn_dir

        from . import journal

        record = {"session_id": session_name(event.session_id), "turn": event.turn, **result.to_json()}
        try:
            if event.dry_run or not in_project(ctx):
                journal.append(ctx.output_dir, record)
            else:
                with journal.lock(ctx.project_dir):
                    journal.append(str(hookturn_dir(ctx.project_dir)), record)
        except OSError as error:
            result.notes.append(
                f"This could not be recorded ({error}), so `hookturn undo` does not know of it."
            )

    def _shell(self, event: TurnComplete, ctx: Context) -> list[str]:
        """Return what shell commands of this turn changed."""
        if (
            not self.config.include_shell
            or event.agent_id
            or event.dry_run
            or not self._remembered.get(ctx, "shell")
        ):
            return []
        dirty, now = self._remembered.get(ctx, "dirty"), self._changed(ctx)
        with self._remembered.change(ctx) as state:
            state["shell"] = False
        if dirty is None or now is None:
            ctx.log.warning("what shell commands changed is not known and will not be committed")
            return []
        before = set(dirty)
        return [path for path in now if path not in before]

    def _changed(self, ctx: Context) -> list[str] | None:
        """Return all files that differ from HEAD now, absolute; None when that is not known."""
        from .git import Stop, find, status

        git = self._git(ctx)
        try:
            top = find(git).top
            entries = status(git).entries
        except (Stop, OSError) as error:
            ctx.log.debug("{}", error)
            return None
        if len(entries) > MAX_TOUCHED:
            return None
        return [os.path.join(top, os.fsdecode(path)) for path in entries]

    def _git(self, ctx: Context) -> Any:
        from .git import Git

        return Git(ctx.project_dir, _env(ctx), timeout=self.config.timeout)


def _env(ctx: Context) -> dict[str, str]:
    # What a host tells of its agent's environment need not be all of it.
    return dict(ctx.env if "PATH" in ctx.env else os.environ)


def _state(project: str) -> str:
    from hookturn.paths import private_folder, project_state

    return private_folder(project_state(project))


def _absolute(paths: Iterable[Any], cwd: str) -> list[str]:
    return [os.path.join(cwd, path) for path in paths if isinstance(path, str) and path]


def _touch(state: dict[str, Any], paths: Iterable[str]) -> None:
    """Count how often each path was touched since it was last committed."""
    touched = state.setdefault("touched", {})
    for path in paths:
        if path in touched:
            touched[path] += 1
        elif len(touched) < MAX_TOUCHED:
            touched[path] = 1
        else:
            state["dropped"] = state.get("dropped", 0) + 1


def plugin(config: Config | None = None) -> Any:
    """Return the plugin; the entry point ``auto-commit``.

    Parameters:
        config: its settings; default: all defaults.
    """
    return AutoCommit(config or Config())


plugin.Config = Config  # type: ignore[attr-defined]
