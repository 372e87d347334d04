"""``hookturn undo``: back to the state before the last auto-commit, and the user's other work stays as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hookturn import Engine, HookturnError, events
from hookturn.paths import hookturn_dir
from hookturn_builtins.auto_commit import Config, plugin
from hookturn_builtins.auto_commit.undo import undo


@pytest.fixture(autouse=True)
def _home(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("XDG_CONFIG_HOME", os.environ["HOME"])
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)


class Repo:
    """A project with a repository in which sessions commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ann")
        self.git("config", "user.email", "ann@example.org")
        self.turn = 0

    def git(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(["git", *words], cwd=self.folder, capture_output=True, check=False)
        assert done.returncode == code, done
        return os.fsdecode(done.stdout).rstrip("\n")

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def base(self, **files: str) -> str:
        for name, text in {"base": "1\n", **files}.items():
            self.write(name, text)
        self.git("add", "-A")
        self.git("commit", "-qm", "base")
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def state(self) -> tuple[object, ...]:
        """Return everything that an undo must bring back: HEAD, the index, the status, the files."""
        files = {
            str(path.relative_to(self.folder)): path.read_text()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and ".git" not in path.parts and ".hookturn" not in path.parts
        }
        refs = self.git("for-each-ref")
        return refs, self.git("ls-files", "--stage"), self.git("status", "--porcelain=v2", "-uall"), files

    def auto(self, *paths: str, session: str = "s1", target: str = "current") -> str:
        config = Config()
        config.every, config.target = 1, target  # type: ignore[assignment]
        self.turn += 1
        with Engine(project_dir=self.folder) as made:
            made.register(plugin(config), "auto-commit")
            out = made.fire(
                events.TurnComplete(
                    session_id=session,
                    turn=self.turn,
                    edited_files=[str(self.folder / path) for path in paths],
                )
            )
        [said] = out.warnings
        assert "committed" in said, said
        return json.loads((self.folder / ".hookturn" / "auto-commit.jsonl").read_text().splitlines()[-1])[
            "commit"
        ]

    def undo(self, **options: object):
        return undo(str(self.folder), dict(os.environ), **options)  # type: ignore[arg-type]

    def refuses(self, words: str, **options: object) -> None:
        """Check that an undo is refused, and that nothing happens."""
        before = self.state()
        with pytest.raises(HookturnError, match="nothing was undone") as caught:
            self.undo(**options)
        assert words in str(caught.value)
        assert self.state() == before


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "project")


def edit(repo: Repo) -> list[str]:
    """Leave work of the session and of the user; returns the session's files."""
    repo.base(changed="1\n", gone="1\n", theirs="1\n", staged="1\n")
    repo.write("staged", "2\n")
    repo.write("added", "a\n")
    repo.git("add", "staged", "added")
    repo.write("theirs", "2\n")
    repo.write("untracked", "u\n")
    repo.write("changed", "2\n")
    repo.write("dir/new", "n\n")
    os.remove(repo.folder / "gone")
    return ["changed", "dir/new", "gone"]


def test_everything_is_as_before_the_commit(repo: Repo) -> None:
    paths = edit(repo)
    before = repo.state()
    commit = repo.auto(*paths)
    done = repo.undo()
    assert (done.commit, sorted(done.paths), done.kept_staged) == (commit, sorted(paths), [])
    assert repo.state() == before
    repo.git("cat-file", "-e", commit)


def test_commits_are_undone_one_by_one(repo: Repo) -> None:
    repo.base()
    states = []
    for number in range(3):
        repo.write("base", f"new {number}\n")
        states.append(repo.head)
        repo.auto("base")
    for state in reversed(states):
        repo.undo()
        assert repo.head == state
    assert (repo.folder / "base").read_text() == "new 2\n"
    repo.refuses("no auto-commit")


def test_an_undone_commit_can_be_made_again_and_undone_again(repo: Repo) -> None:
    base = repo.base()
    repo.write("base", "2\n")
    for _ in range(2):
        repo.auto("base")
        repo.undo()
        assert repo.head == base


def test_the_first_commit_of_a_repository(repo: Repo) -> None:
    repo.write("a", "1\n")
    before = repo.git("status", "--porcelain")
    repo.auto("a")
    repo.undo()
    repo.git("rev-parse", "--verify", "-q", "HEAD", code=1)
    assert repo.git("status", "--porcelain") == before == "?? a"


def test_a_detached_head(repo: Repo) -> None:
    base = repo.base()
    repo.git("checkout", "-q", "--detach")
    repo.write("a", "1\n")
    before = repo.state()
    repo.auto("a")
    repo.undo()
    assert repo.state() == before
    assert repo.head == base


def test_later_work_on_the_same_files_is_kept(repo: Repo) -> None:
    repo.base(a="1\n", b="1\n", c="1\n")
    for name in "abc":
        repo.write(name, "2\n")
    repo.auto("a", "b", "c")
    repo.write("a", "3\n")
    repo.write("b", "3\n")
    repo.git("add", "b")
    repo.write("b", "4\n")
    done = repo.undo()
    assert done.kept_staged == ["b"]
    assert [(repo.folder / name).read_text() for name in "abc"] == ["3\n", "4\n", "2\n"]
    assert repo.git("show", ":b") == "3"
    assert repo.git("status", "--porcelain") == " M a\nMM b\n M c"


def test_what_was_staged_of_the_same_files_is_staged_again(repo: Repo) -> None:
    repo.base(a="1\n", run="1\n")
    repo.write("a", "2\n")
    repo.write("new one", "1\n")
    (repo.folder / "run").chmod(0o755)
    repo.git("add", "-A")
    repo.write("a", "3\n")
    repo.write("new one", "2\n")
    before = repo.state()
    repo.auto("a", "new one", "run")
    repo.undo()
    assert repo.state() == before
    assert repo.git("show", ":a") == "2"


def test_what_was_staged_and_is_gone_from_git_does_no_harm(repo: Repo) -> None:
    repo.base(a="1\n")
    repo.write("a", "2\n")
    repo.git("add", "a")
    repo.write("a", "3\n")
    repo.auto("a")
    repo.git("prune", "--expire=now")
    repo.undo()
    assert repo.git("status", "--porcelain") == " M a"
    repo.git("fsck", "--strict")


def test_discard_puts_the_files_back_too(repo: Repo) -> None:
    base = repo.base(changed="1\n", gone="1\n")
    before = repo.state()
    repo.write("other", "user's\n")
    repo.write("staged", "user's\n")
    repo.git("add", "staged")
    repo.write("changed", "2\n")
    repo.write("dir/new", "n\n")
    os.remove(repo.folder / "gone")
    commit = repo.auto("changed", "dir/new", "gone")
    assert repo.undo(discard=True).discarded
    assert repo.git("status", "--porcelain") == "A  staged\n?? other"
    repo.git("rm", "-qf", "staged")
    os.remove(repo.folder / "other")
    assert repo.state() == before
    assert repo.head == base
    repo.git("cherry-pick", commit)
    assert (repo.folder / "changed").read_text() == "2\n"


def test_discard_of_a_root_commit(repo: Repo) -> None:
    repo.write("a", "1\n")
    repo.auto("a")
    repo.undo(discard=True)
    assert not (repo.folder / "a").exists()
    assert repo.git("status", "--porcelain") == ""


@pytest.mark.parametrize("how", ["changed", "staged", "recreated", "removed"])
def test_discard_refuses_where_files_changed_since(repo: Repo, how: str) -> None:
    repo.base(a="1\n", gone="1\n")
    repo.write("a", "2\n")
    os.remove(repo.folder / "gone")
    repo.auto("a", "gone")
    if how == "recreated":
        repo.write("gone", "again\n")
    elif how == "removed":
        os.remove(repo.folder / "a")
    else:
        repo.write("a", "3\n")
        if how == "staged":
            repo.git("add", "a")
            repo.write("a", "2\n")
    repo.refuses("would be lost: gone" if how == "recreated" else "would be lost: a", discard=True)
    repo.undo()


# -- refused ------------------------------------------------------------------------------------------------


def committed(repo: Repo) -> str:
    repo.base()
    repo.write("a", "1\n")
    return repo.auto("a")


def test_a_commit_with_another_after_it(repo: Repo) -> None:
    commit = committed(repo)
    repo.git("commit", "-qm", "mine", "--allow-empty")
    repo.refuses(f"git revert {commit[:10]}")


def test_another_branch_is_checked_out(repo: Repo) -> None:
    committed(repo)
    repo.git("checkout", "-qb", "other")
    repo.refuses("it was made on main")


def test_a_commit_that_was_amended(repo: Repo) -> None:
    committed(repo)
    repo.git("commit", "-q", "--amend", "-m", "mine now")
    repo.refuses("something else came after it")


def test_a_commit_that_was_pushed(repo: Repo, tmp_path: Path) -> None:
    repo.base()
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "remote")], check=True)
    repo.git("remote", "add", "origin", str(tmp_path / "remote"))
    repo.write("a", "1\n")
    commit = repo.auto("a")
    repo.git("push", "-q", "origin", "main")
    repo.refuses("was pushed (origin/main")
    assert repo.head == commit


def test_a_merge_in_progress(repo: Repo) -> None:
    commit = committed(repo)
    (repo.folder / ".git" / "MERGE_HEAD").write_text(commit + "\n")
    repo.refuses("a merge is in progress")


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_a_lock_stays(repo: Repo, name: str) -> None:
    committed(repo)
    lock = repo.folder / ".git" / name
    lock.write_text("")
    commit = repo.head
    with pytest.raises(HookturnError, match=r"\.lock"):
        repo.undo()
    assert lock.exists()
    lock.unlink()
    assert repo.head == commit
    assert repo.git("status", "--porcelain") == ""


def test_a_corrupt_index(repo: Repo) -> None:
    commit = committed(repo)
    (repo.folder / ".git" / "index").write_bytes(b"x" * 99)
    with pytest.raises(HookturnError, match="index"):
        repo.undo()
    assert repo.head == commit


def test_hostile_records_do_no_harm(repo: Repo) -> None:
    repo.base()
    head = repo.head
    repo.git("branch", "victim")
    records = [
        {"commit": head, "ref": "refs/heads/../../x", "target": "session"},
        {"commit": head, "ref": "refs/tags/x", "target": "session"},
        {"commit": head, "ref": "--stdin", "target": "session"},
        {"commit": "--all", "ref": "refs/heads/main", "target": "current"},
        {"commit": ["x"], "ref": None, "target": {}},
        {"commit": "0" * 40, "ref": "refs/heads/main", "target": "current"},
    ]
    hookturn_dir(repo.folder)
    for record in records:
        lines = ["null", "[1]", "{", json.dumps({"outcome": "committed", **record})]
        (repo.folder / ".hookturn" / "auto-commit.jsonl").write_text("\n".join(lines))
        repo.refuses("")


# -- other targets --------------------------------------------------------------------------------------


def test_a_sessions_ref_goes_back_and_then_away(repo: Repo) -> None:
    repo.base()
    repo.write("a", "1\n")
    before = repo.state()
    first = repo.auto("a", target="session")
    repo.write("a", "2\n")
    repo.auto("a", target="session")
    assert repo.undo().parent == first
    assert repo.git("rev-parse", "refs/hookturn/s1") == first
    assert repo.undo().parent == ""
    repo.write("a", "1\n")
    assert repo.state() == before


def test_another_branch_goes_back(repo: Repo) -> None:
    base = repo.base()
    repo.write("a", "1\n")
    repo.auto("a", target="branch")
    repo.refuses("git restore", discard=True)
    assert repo.undo().parent == base
    assert repo.git("rev-parse", "hookturn/s1") == base


def test_the_last_one_of_a_session(repo: Repo) -> None:
    repo.base()
    repo.write("a", "1\n")
    one = repo.auto("a", session="one", target="session")
    two = repo.auto("a", session="two", target="session")
    assert repo.undo(session="one").commit == one
    repo.refuses("no auto-commit of session one", session="one")
    assert repo.undo().commit == two


# -- the command ---------------------------------------------------------------------------------------------


def command(repo: Repo, *words: str, cwd: Path | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "hookturn", "undo", *words],
        cwd=cwd or repo.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command(repo: Repo) -> None:
    base = repo.base()
    repo.write("dir/a\nb", "1\n")
    before = repo.state()
    commit = repo.auto("dir/a\nb")
    at = repo.state()
    code, out, _ = command(repo, "--dry-run", cwd=repo.folder / "dir")
    assert (code, repo.state()) == (0, at)
    assert f"{commit[:10]} would be undone" in out
    code, out, _ = command(repo, "--dry-run", "--json")
    said = json.loads(out)
    assert (code, repo.state()) == (0, at)
    assert (said["schema"], said["dry_run"], said["commit"], said["parent"]) == (1, True, commit, base)
    assert (said["ref"], said["paths"], said["kept_staged"]) == ("refs/heads/main", ["dir/a\nb"], [])
    code, out, _ = command(repo)
    assert code == 0
    assert f"{commit[:10]} was undone" in out
    assert "dir/a\\nb" in out
    assert repo.state() == before
    code, out, err = command(repo, "--json")
    assert code == 1
    assert "no auto-commit" in json.loads(out)["error"]
    assert "no auto-commit" in err


def test_the_command_without_any_commit(repo: Repo) -> None:
    code, _, err = command(repo)
    assert code == 1
    assert "no auto-commit was made here" in err
    assert not (repo.folder / ".hookturn").exists()
