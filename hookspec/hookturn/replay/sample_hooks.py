"""The hooks of ``hookturn replay`` without a file: small ones, worth reading as examples.

Each is an ordinary plugin; copy one into a module of your own and name it under ``hooks:`` in hookturn.yaml.
"""

from __future__ import annotations

from .. import redact
from ..spec.answers import Continue, Deny, Inject, Rewrite
from ..spec.markers import hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..spec.context import Context
    from ..spec.events import PostToolExecution, PreToolExecution, TurnComplete


class NoRecursiveDelete:
    """A guard: nobody deletes folders, whatever else is allowed."""

    hookturn_name = "no-recursive-delete"

    @hookimpl(guard=True, tools=["bash"])
    def pre_tool_execution(self, event: PreToolExecution) -> Deny | None:
        """Deny ``rm -r`` in all its spellings."""
        words = event.command.split()
        recursive = any(word.startswith("-") and "r" in word.lower() for word in words)
        if "rm" in words and recursive:
            return Deny("Recursive deletes are not allowed here.", advice="Remove single files by name.")
        return None


class QuietTests:
    """A rewrite: test runs stop at the first failure, which saves tokens."""

    hookturn_name = "quiet-tests"

    @hookimpl(tools=["bash"])
    def pre_tool_execution(self, event: PreToolExecution) -> Rewrite | None:
        """Add ``-x -q`` to a plain pytest run."""
        if event.command in ("pytest", "python -m pytest"):
            return Rewrite(command=f"{event.command} -x -q")
        return None


class HideSecrets:
    """A rewrite of results: the model never reads a token."""

    hookturn_name = "hide-secrets"

    @hookimpl
    def post_tool_execution(self, event: PostToolExecution) -> Rewrite | None:
        """Replace secrets in what the tool returned."""
        clean = redact.redact(event.result_text)
        return Rewrite(result_text=clean) if clean != event.result_text else None


class TestBeforeDone:
    """An injected text and a Continue: edits are followed by a test run."""

    hookturn_name = "test-before-done"

    @hookimpl(tools=["write"])
    def post_tool_execution(self, event: PostToolExecution, ctx: Context) -> Inject | None:
        """Remember that something was edited."""
        if event.status == "ok" and ctx.state.add("edits") == 1:
            return Inject("Run the tests before you say that you are done.")
        return None

    @hookimpl(specname="on_turn_complete")
    def tests_ran(self, event: TurnComplete, ctx: Context) -> Continue | None:
        """Go on when files were edited and no command ran after that."""
        commands = [call for call in event.tool_calls if call["kind"] == "bash" and call["status"] == "ok"]
        if event.edited_files and not commands and not event.continued:
            return Continue("Files were edited and no command succeeded: run the tests.")
        return None


def plugins() -> list[object]:
    """Return the sample's hooks in order."""
    return [NoRecursiveDelete(), QuietTests(), HideSecrets(), TestBeforeDone()]
