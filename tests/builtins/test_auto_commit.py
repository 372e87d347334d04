"""The auto-commit plugin in real repositories: every state has its defined outcome, and touches nothing else."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from hookturn import Continue, Engine, HookturnError, events, hookimpl
from hookturn_builtins.auto_commit import Config, plugin

IDENTITY = {"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.org", "GIT_COMMITTER_NAME": "T",
            "GIT_COMMITTER_EMAIL": "t@example.org"}  # fmt: skip
TOKEN = "ghp_" + "k3Jx9QpL2mVz8RtY4wNb7HcD1sFg" + "0AbCdEfG"[:8]


class Repo:
    """A project with a git repository, and a way to ask git about it."""

    def __init__(self, folder: Path, *, init: bool = True) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        if init:
            self.git("init", "-q", "-b", "main")
            self.git("config", "user.name", "Ann")
            self.git("config", "user.email", "ann@example.org")

    def git(self, *words: str, code: int = 0, cwd: Path | None = None) -> str:
        done = subprocess.run(["git", *words], cwd=cwd or self.folder, capture_output=True, check=False)
        assert done.returncode == code, done
        return os.fsdecode(done.stdout).rstrip("\n")

    def write(self, name: str, text: str | bytes = "x\n") -> str:
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def base(self, **files: str) -> str:
        """Make a first commit."""
        for name, text in {"base.txt": "base\n", **files}.items():
            self.write(name, text)
        self.git("add", "-A")
        self.git("commit", "-qm", "base")
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def status(self) -> str:
        return self.git("status", "--porcelain", "--untracked-files=all")

    def changed(self, commit: str = "HEAD") -> set[str]:
        """Return the files of a commit."""
        names = self.git("diff-tree", "-r", "--root", "--no-commit-id", "--name-only", "-z", commit)
        return {name for name in names.split("\0") if name}

    def clean(self) -> None:
        """Check that no lock is left and the repository is whole."""
        assert not list((self.folder / ".git").rglob("*.lock"))
        done = subprocess.run(["git", "fsck", "--strict"], cwd=self.folder, capture_output=True, check=False)
        assert done.returncode == 0, done


@pytest.fixture(autouse=True)
def _home(monkeypatch, tmp_path_factory):
    """Give git an empty home, so that no identity and no settings come from outside."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("XDG_CONFIG_HOME", os.environ["HOME"])
    for name in [name for name in os.environ if name.startswith("GIT_")] + ["EMAIL"]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "project")


def config(**settings: object) -> Config:
    made = Config()
    for name, value in {"every": 1, **settings}.items():
        assert hasattr(made, name)
        setattr(made, name, value)
    made.validate()
    return made


def engine(project: Path, **settings: object) -> Engine:
    options = {name: settings.pop(name) for name in ("dry_run", "output_dir") if name in settings}
    made = Engine(project_dir=project, **options)
    made.register(plugin(config(**settings)), "auto-commit", layer="builtin")
    return made


def complete(made: Engine, *paths: str, session: str = "s1", turn: int = 1, **fields: object) -> str:
    """Fire a turn's end that touched files; returns what the user is told."""
    event = events.TurnComplete(session_id=session, turn=turn, edited_files=list(paths), **fields)
    out = made.fire(event)
    assert not out.failures, out.failures
    return "\n".join(out.warnings)


def auto(repo: Repo, *paths: str, **settings: object) -> dict:
    """Commit the touched paths in an engine of its own; returns the record."""
    with engine(repo.folder, **settings) as made:
        said = complete(made, *paths)
    record = records(repo)[-1]
    assert record["outcome"] in ("committed", "nothing to do", "skipped", "failed")
    if paths or record["outcome"] != "nothing to do":
        assert record["outcome"] in said
    else:
        assert said == ""  # a turn in which no tool touched a file is no news
    if record["reason"] and record["outcome"] != "nothing to do":
        assert record["reason"][:40] in said
    assert record["processes"] <= 6
    return record


def records(repo: Repo) -> list[dict]:
    path = repo.folder / ".hookturn" / "auto-commit.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return [json.loads(line) for line in path.read_text().splitlines()]


# -- no repository, empty repository, nothing to do ------------------------------------------------------


def test_not_a_repository_is_skipped(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "plain", init=False)
    record = auto(repo, repo.write("a"))
    assert (record["outcome"], record["commit"]) == ("skipped", "")
    assert "no git repository" in record["reason"]
    assert sorted(os.listdir(repo.folder)) == [".hookturn", "a"]


def test_a_bare_repository_is_skipped(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "bare.git", init=False)
    repo.git("init", "-q", "--bare")
    record = auto(repo, str(repo.folder / "a"))
    assert record["outcome"] == "skipped"
    assert "bare" in record["reason"]


def test_a_git_directory_itself_is_skipped(repo: Repo) -> None:
    inside = Repo(repo.folder / ".git", init=False)
    assert auto(inside, str(inside.folder / "a"))["outcome"] == "skipped"


def test_an_empty_repository_gets_a_root_commit(repo: Repo) -> None:
    repo.write("other")
    record = auto(repo, repo.write("a.txt"))
    assert (record["outcome"], record["parent"]) == ("committed", "")
    assert record["commit"] == repo.head
    assert repo.changed() == {"a.txt"}
    assert repo.git("rev-list", "--count", "HEAD") == "1"
    assert repo.status() == "?? other"
    repo.clean()


def test_nothing_changed(repo: Repo) -> None:
    before = repo.base()
    record = auto(repo, str(repo.folder / "base.txt"))
    assert (record["outcome"], repo.head) == ("nothing to do", before)


def test_no_touched_files_need_no_git(repo: Repo) -> None:
    repo.base()
    record = auto(repo)
    assert (record["outcome"], record["processes"]) == ("nothing to do", 0)


def test_ignored_files_are_never_forced(repo: Repo) -> None:
    before = repo.base(**{".gitignore": "*.log\nbuild/\n"})
    record = auto(repo, repo.write("a.log"), repo.write("build/out.txt"))
    assert (record["outcome"], repo.head) == ("nothing to do", before)
    assert repo.git("ls-files", "--cached") == ".gitignore\nbase.txt"


def test_a_tracked_file_that_a_rule_ignores_is_committed(repo: Repo) -> None:
    repo.base(**{"a.log": "1\n"})
    repo.write(".gitignore", "*.log\n")
    assert auto(repo, repo.write("a.log", "2\n"))["outcome"] == "committed"
    assert repo.changed() == {"a.log"}


def test_a_missing_project_folder_is_skipped(tmp_path: Path) -> None:
    from hookturn_builtins.auto_commit.commit import Request, commit

    result = commit(
        Request(
            project=str(tmp_path / "gone"), paths=["a"], session_id="s", turn=1, agent="a", prompts=[],
            env=dict(os.environ), state=lambda: str(tmp_path), dry_run=True,
        ),
        config(),
    )  # fmt: skip
    assert result.outcome == "skipped"


# -- where it is committed --------------------------------------------------------------------------------


def test_a_detached_head_is_committed_and_said(repo: Repo) -> None:
    base = repo.base()
    repo.git("checkout", "-q", "--detach")
    record = auto(repo, repo.write("base.txt", "2\n"))
    assert (record["outcome"], record["ref"], record["parent"]) == ("committed", "HEAD", base)
    assert repo.head == record["commit"]
    assert repo.git("rev-parse", "main") == base
    with engine(repo.folder) as made:
        assert "detached HEAD" in complete(made, repo.write("base.txt", "3\n"))


def test_a_linked_working_tree_is_committed(repo: Repo, tmp_path: Path) -> None:
    base = repo.base()
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked", init=False)
    record = auto(linked, linked.write("base.txt", "2\n"), linked.write("new", "n\n"))
    assert (record["outcome"], record["ref"]) == ("committed", "refs/heads/side")
    assert linked.changed() == {"base.txt", "new"}
    assert repo.git("rev-parse", "main") == base
    repo.clean()


def test_an_environment_that_points_to_another_repository_is_dropped(
    repo: Repo, tmp_path: Path, monkeypatch
) -> None:
    other = Repo(tmp_path / "other")
    before = other.base()
    repo.base()
    for name, value in {
        "GIT_DIR": str(other.folder / ".git"),
        "GIT_WORK_TREE": str(other.folder),
        "GIT_INDEX_FILE": str(other.folder / ".git" / "index"),
        **IDENTITY,
    }.items():
        monkeypatch.setenv(name, value)
    record = auto(repo, repo.write("a", "a\n"))
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    assert (record["outcome"], record["commit"]) == ("committed", repo.head)
    assert other.head == before
    assert repo.git("log", "-1", "--format=%an") == "Ann"


def test_a_project_in_a_folder_of_the_repository(repo: Repo) -> None:
    repo.base()
    inner = Repo(repo.folder / "packages" / "one", init=False)
    record = auto(inner, inner.write("a"), "relative", repo.write("above"))
    assert record["outcome"] == "committed"
    assert repo.changed() == {"packages/one/a", "above"}


def test_a_repository_of_somebody_else_is_skipped(repo: Repo) -> None:
    if os.name == "nt" or os.geteuid() != 0:
        pytest.skip("only root can give a repository away")
    before = repo.base()
    path = repo.write("a")
    for folder, _, files in os.walk(repo.folder / ".git"):
        for name in (folder, *(os.path.join(folder, file) for file in files)):
            os.lchown(name, 12345, 12345)
    os.lchown(repo.folder, 12345, 12345)
    record = auto(repo, path)
    assert record["outcome"] == "skipped"
    assert "safe.directory" in record["reason"]
    assert not (Path(os.environ["HOME"]) / ".gitconfig").exists()
    os.lchown(repo.folder, 0, 0)
    for folder, _, files in os.walk(repo.folder / ".git"):
        for name in (folder, *(os.path.join(folder, file) for file in files)):
            os.lchown(name, 0, 0)
    assert repo.head == before


# -- in the middle of something ---------------------------------------------------------------------------


def conflict(repo: Repo) -> str:
    """Make two branches that cannot be merged; returns the name of the other one."""
    repo.base(f="1\n")
    repo.git("checkout", "-qb", "side")
    repo.write("f", "side\n")
    repo.git("commit", "-qam", "side")
    repo.git("checkout", "-q", "main")
    repo.write("f", "main\n")
    repo.git("commit", "-qam", "main")
    return "side"


def _merge(repo):
    repo.git("merge", conflict(repo), code=1)


def _merge_resolved(repo):
    _merge(repo)
    repo.git("add", "f")


def _rebase(repo):
    repo.git("rebase", conflict(repo), code=1)


def _rebase_apply(repo):
    repo.git("rebase", "--apply", conflict(repo), code=1)


def _am(repo):
    side = conflict(repo)
    patch = repo.folder.parent / "patch"
    patch.write_text(repo.git("format-patch", "--stdout", "-1", side) + "\n")
    repo.git("am", str(patch), code=128)


def _cherry_pick(repo):
    repo.git("cherry-pick", conflict(repo), code=1)


def _revert(repo):
    conflict(repo)
    repo.git("revert", "--no-edit", "HEAD~1", code=1)


def _bisect(repo):
    conflict(repo)
    repo.git("bisect", "start")


def _stash(repo):
    repo.base(f="1\n")
    repo.write("f", "mine\n")
    repo.git("stash", "-q")
    repo.write("f", "other\n")
    repo.git("commit", "-qam", "other")
    repo.git("stash", "pop", code=1)


@pytest.mark.parametrize(
    "begin",
    [_merge, _merge_resolved, _rebase, _rebase_apply, _am, _cherry_pick, _revert, _bisect, _stash],
    ids=lambda begin: begin.__name__.strip("_"),
)
@pytest.mark.parametrize("target", ["current", "session"])
def test_in_the_middle_of_something_nothing_is_committed(repo: Repo, begin, target: str) -> None:
    begin(repo)
    before, refs = repo.head, repo.git("for-each-ref")
    status = repo.status()
    record = auto(repo, str(repo.folder / "f"), repo.write("new"), target=target)
    assert record["outcome"] == "skipped"
    assert "in progress" in record["reason"] or "unmerged" in record["reason"]
    assert (repo.head, repo.git("for-each-ref")) == (before, refs)
    assert repo.status().replace("\n?? new", "").replace("?? new", "") == status
    repo.clean()


def test_conflict_markers_alone_are_never_committed(repo: Repo) -> None:
    before = repo.base(f="1\n")
    record = auto(repo, repo.write("f", "a\n<<<<<<< ours\n1\n=======\n2\n>>>>>>> theirs\nb\n"))
    assert (record["outcome"], repo.head) == ("nothing to do", before)
    assert record["left_out"] == {"f": "it has conflict markers"}


# -- locks, identity, hooks, signatures -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock"])
def test_a_lock_is_waited_for_and_never_deleted(repo: Repo, name: str) -> None:
    before = repo.base()
    lock = repo.folder / ".git" / name
    lock.write_text("")
    record = auto(repo, repo.write("a"))
    assert (record["outcome"], repo.head) == ("skipped", before)
    assert name in record["reason"]
    assert lock.exists()
    lock.unlink()
    assert repo.status() == "?? a"
    assert auto(repo, str(repo.folder / "a"))["outcome"] == "committed"


def test_a_lock_of_the_branch_leaves_the_index_as_it_was(repo: Repo) -> None:
    before = repo.base()
    lock = repo.folder / ".git" / "refs" / "heads" / "main.lock"
    lock.write_text("")
    record = auto(repo, repo.write("a"))
    assert (record["outcome"], repo.head) == ("skipped", before)
    assert repo.status() == "?? a"
    assert lock.exists()
    lock.unlink()
    repo.clean()


def test_a_lock_that_goes_in_time_is_no_obstacle(repo: Repo) -> None:
    import threading

    repo.base()
    lock = repo.folder / ".git" / "index.lock"
    lock.write_text("")
    timer = threading.Timer(0.3, lock.unlink)
    timer.start()
    assert auto(repo, repo.write("a"))["outcome"] == "committed"
    timer.join()


def test_without_an_identity_there_is_a_fallback_and_no_setting_is_written(repo: Repo) -> None:
    repo.base()
    repo.git("config", "--unset", "user.name")
    repo.git("config", "--unset", "user.email")
    before = (repo.folder / ".git" / "config").read_bytes()
    assert auto(repo, repo.write("a"))["outcome"] == "committed"
    assert (
        repo.git("log", "-1", "--format=%an <%ae>") == "hookturn auto-commit <auto-commit@hookturn.invalid>"
    )
    assert (repo.folder / ".git" / "config").read_bytes() == before
    assert os.listdir(os.environ["HOME"]) == []


def test_half_an_identity_is_kept(repo: Repo) -> None:
    repo.base()
    repo.git("config", "--unset", "user.email")
    repo.git("config", "user.useConfigOnly", "true")
    assert auto(repo, repo.write("a"))["outcome"] == "committed"
    assert repo.git("log", "-1", "--format=%an <%ae>") == "Ann <auto-commit@hookturn.invalid>"


def hook(repo: Repo, name: str, text: str) -> None:
    path = repo.folder / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


ALL_HOOKS = [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "reference-transaction",
    "post-index-change",
]


def test_repository_hooks_do_not_run_by_default(repo: Repo, tmp_path: Path) -> None:
    repo.base()
    for name in ALL_HOOKS:
        hook(repo, name, f"touch '{tmp_path}/ran'; exit 1")
    assert auto(repo, repo.write("a"))["outcome"] == "committed"
    assert auto(repo, repo.write("a", "2\n"), target="session")["outcome"] == "committed"
    assert not (tmp_path / "ran").exists()


def test_a_refusing_hook_leaves_the_index_as_it_was(repo: Repo) -> None:
    before = repo.base(tracked="1\n")
    repo.write("mine", "staged\n")
    repo.git("add", "mine")
    hook(repo, "pre-commit", "echo 'no commits today' >&2; exit 1")
    paths = [repo.write("new"), repo.write("tracked", "2\n")]
    status, staged = repo.status(), repo.git("ls-files", "--stage", "--debug")
    record = auto(repo, *paths, hooks=True)
    assert (record["outcome"], repo.head) == ("failed", before)
    assert "no commits today" in record["reason"]
    assert repo.status() == status
    assert repo.git("ls-files", "--stage").split("\n") == [
        line for line in staged.split("\n") if not line.startswith("  ")
    ]
    repo.clean()


def test_hooks_run_where_they_are_asked_for(repo: Repo) -> None:
    repo.base()
    hook(repo, "commit-msg", 'echo "Checked: yes" >> "$1"')
    assert auto(repo, repo.write("a"), hooks=True)["outcome"] == "committed"
    assert "Checked: yes" in repo.git("log", "-1", "--format=%B")


def test_a_hanging_hook_is_killed_at_the_time_limit(repo: Repo, tmp_path: Path) -> None:
    before = repo.base()
    hook(repo, "pre-commit", f"echo $$ > '{tmp_path}/pid'; sleep 600 & wait")
    record = auto(repo, repo.write("a"), hooks=True, timeout=1.5)
    assert (record["outcome"], repo.head) == ("failed", before)
    assert "1.5 s" in record["reason"]
    pid = int((tmp_path / "pid").read_text())
    assert not os.path.exists(f"/proc/{pid}") or "zombie" in Path(f"/proc/{pid}/status").read_text()
    assert repo.status() == "?? a"
    repo.clean()


@pytest.fixture
def signing(repo: Repo, tmp_path: Path):
    """A repository that signs, with a gpg that is given."""

    def configure(script: str) -> Repo:
        repo.base()
        gpg = tmp_path / "gpg"
        gpg.write_text(f"#!/bin/sh\n{script}\n")
        gpg.chmod(0o755)
        repo.git("config", "commit.gpgsign", "true")
        repo.git("config", "gpg.program", str(gpg))
        return repo

    return configure


@pytest.mark.parametrize("script", ["exit 2", "sleep 600"])
def test_commits_are_unsigned_with_a_note(signing, script: str) -> None:
    repo = signing(script)
    record = auto(repo, repo.write("a"))
    assert record["outcome"] == "committed"
    assert "not signed" in record["notes"][0]
    assert "gpgsig" not in repo.git("cat-file", "commit", "HEAD")


@pytest.mark.parametrize(("script", "words"), [("exit 2", "gpg failed"), ("sleep 600", "time limit")])
def test_a_broken_gpg_fails_where_signatures_are_asked_for(signing, script: str, words: str) -> None:
    repo = signing(script)
    before = repo.head
    record = auto(repo, repo.write("a"), sign=True, timeout=1.5)
    assert (record["outcome"], repo.head) == ("failed", before)
    assert words in record["reason"]
    assert repo.status() == "?? a"
    repo.clean()


# -- what is committed ------------------------------------------------------------------------------------


def test_deletion_rename_and_symlink_are_committed(repo: Repo) -> None:
    repo.base(gone="1\n", old="a line\nand another\n")
    os.remove(repo.folder / "gone")
    os.rename(repo.folder / "old", repo.folder / "new")
    os.symlink("/nowhere/at/all", repo.folder / "link")
    names = ["gone", "old", "new", "link"]
    record = auto(repo, *(str(repo.folder / name) for name in names))
    assert record["outcome"] == "committed"
    assert sorted(record["paths"]) == sorted(names)
    assert repo.changed() == set(names)
    assert repo.git("cat-file", "-p", "HEAD:link") == "/nowhere/at/all"
    assert repo.status() == ""


def test_a_mode_change_is_committed(repo: Repo) -> None:
    repo.base(run="#!/bin/sh\n")
    (repo.folder / "run").chmod(0o755)
    assert auto(repo, str(repo.folder / "run"))["outcome"] == "committed"
    assert repo.git("ls-tree", "HEAD", "run").startswith("100755 ")


ODD = ["new\nline", 'quo"te', "*", "a*b", "?", "[a]", "-dash", "--all", ":(glob)x", ":(exclude)*", "!x", "#x", " blank ",
       "tab\t", "\\back", "ünïcødé", "\udcff\udcfe-bytes", "dir/-x", "~", "$(touch pwned)", "a;b", "'", "HEAD", "{}"]  # fmt: skip


@pytest.mark.parametrize("target", ["current", "session"])
def test_odd_names_are_committed_and_exactly_these(repo: Repo, target: str) -> None:
    repo.base(decoy="1\n", axb="1\n")
    for name in ("decoy", "axb", "other", "x"):
        repo.write(name, "not mine\n")
    record = auto(repo, *(repo.write(name, "mine\n") for name in ODD), target=target)
    assert record["outcome"] == "committed"
    assert repo.changed(record["commit"]) == set(ODD)
    # and again, when they are tracked
    record = auto(repo, *(repo.write(name, "again\n") for name in ODD[::2]), target=target)
    assert repo.changed(record["commit"]) == set(ODD[::2])
    assert not (repo.folder / "pwned").exists()


@pytest.mark.parametrize(
    "path", ["\0", "a\0b", "lone\ud800", "/", "", ".", "..", "/etc/hostname", "../outside", "x" * 300]
)
def test_paths_that_cannot_be_are_no_trouble(repo: Repo, path: str) -> None:
    repo.base()
    record = auto(repo, path, repo.write("a"))
    assert record["outcome"] == "committed"
    assert repo.changed() == {"a"}


def test_what_the_user_staged_or_changed_stays_so(repo: Repo) -> None:
    repo.base(staged="1\n", modified="1\n", removed="1\n", both="1\n")
    repo.write("staged", "2\n")
    repo.write("both", "2\n")
    repo.write("added", "new\n")
    repo.git("add", "staged", "both", "added")
    repo.git("rm", "-q", "removed")
    repo.write("both", "3\n")
    repo.write("modified", "2\n")
    repo.write("untracked")
    repo.write("intended")
    repo.git("add", "-N", "intended")
    before, index = repo.status(), repo.git("ls-files", "--stage")
    record = auto(repo, repo.write("mine"), repo.write("base.txt", "2\n"))
    assert record["outcome"] == "committed"
    assert repo.changed() == {"mine", "base.txt"}
    assert repo.status() == before
    kept = [
        line
        for line in repo.git("ls-files", "--stage").split("\n")
        if not line.endswith(("mine", "base.txt"))
    ]
    assert kept == [line for line in index.split("\n") if not line.endswith("base.txt")]


def test_a_file_taken_out_of_the_index_is_left_to_the_user(repo: Repo) -> None:
    repo.base(f="1\n")
    repo.git("rm", "-q", "--cached", "f")
    before = repo.status()
    record = auto(repo, repo.write("f", "2\n"))
    assert record["outcome"] == "nothing to do"
    assert record["left_out"] == {"f": "it was taken out of the index"}
    assert repo.status() == before


def test_a_folder_commits_nothing_below_it(repo: Repo) -> None:
    before = repo.base()
    repo.write("dir/a")
    assert auto(repo, str(repo.folder / "dir"), str(repo.folder))["outcome"] == "nothing to do"
    assert repo.head == before


def test_a_path_through_a_link_is_the_file_itself(repo: Repo, tmp_path: Path) -> None:
    repo.base()
    repo.write("real/a")
    os.symlink("real", repo.folder / "link")
    os.symlink(repo.folder, tmp_path / "way")
    os.symlink(tmp_path, repo.folder / "out")
    (tmp_path / "foreign").write_text("x")
    record = auto(repo, str(repo.folder / "link" / "a"), repo.write("b"), str(repo.folder / "out" / "foreign"),
                  str(tmp_path / "way" / "b"))  # fmt: skip
    assert repo.changed() == {"real/a", "b"}
    assert list(record["left_out"].values()) == ["it is outside of the repository"]


def submodule(repo: Repo, tmp_path: Path) -> Repo:
    origin = Repo(tmp_path / "origin")
    origin.base()
    repo.base()
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(origin.folder), "sub")
    repo.git("commit", "-qm", "sub")
    inner = Repo(repo.folder / "sub", init=False)
    inner.git("config", "user.name", "Ann")
    inner.git("config", "user.email", "ann@example.org")
    return inner


def test_dirty_content_of_a_submodule_is_ignored(repo: Repo, tmp_path: Path) -> None:
    inner = submodule(repo, tmp_path)
    before = repo.head
    paths = [inner.write("base.txt", "2\n"), inner.write("new")]
    assert auto(repo, *paths, str(inner.folder))["outcome"] == "nothing to do"
    assert (repo.head, inner.git("status", "--porcelain")) == (before, " M base.txt\n?? new")


@pytest.mark.parametrize("name", ["sub", "sub/base.txt"])
def test_a_submodule_whose_pointer_moved_is_committed(repo: Repo, tmp_path: Path, name: str) -> None:
    inner = submodule(repo, tmp_path)
    inner.write("base.txt", "2\n")
    inner.git("commit", "-qam", "inner")
    inner.write("base.txt", "3\n")
    record = auto(repo, str(repo.folder / name))
    assert record["outcome"] == "committed"
    assert repo.changed() == {"sub"}
    assert repo.git("rev-parse", "HEAD:sub") == inner.head


def test_a_nested_repository_is_never_added(repo: Repo) -> None:
    before = repo.base()
    nested = Repo(repo.folder / "nested")
    nested.base()
    record = auto(repo, nested.write("a"), str(nested.folder))
    assert (record["outcome"], repo.head) == ("nothing to do", before)
    assert record["left_out"] == {"nested": "it is another repository"}
    empty = Repo(repo.folder / "empty")
    assert auto(repo, empty.write("a"))["outcome"] == "nothing to do"
    assert repo.head == before


def test_a_huge_file_is_left_out(repo: Repo) -> None:
    repo.base()
    with open(repo.folder / "huge", "wb") as file:
        file.truncate(10_000_001)
    with open(repo.folder / "large", "wb") as file:
        file.truncate(10_000_000)
    record = auto(repo, *(str(repo.folder / name) for name in ("huge", "large")), repo.write("a"))
    assert repo.changed() == {"large", "a"}
    assert "10,000,001" in record["left_out"]["huge"]


def test_too_many_files_are_skipped(repo: Repo) -> None:
    before = repo.base()
    paths = [repo.write(f"many/{n}") for n in range(5001)]
    record = auto(repo, *paths)
    assert (record["outcome"], repo.head) == ("skipped", before)
    assert "5,001" in record["reason"]
    record = auto(repo, *paths[:5000])
    assert (record["outcome"], len(record["paths"])) == ("committed", 5000)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        (".env", "A=1\n", "name"),
        ("config/.env.production", "A=1\n", "name"),
        ("id_rsa", "x\n", "name"),
        ("certs/server.KEY", "x\n", "name"),
        ("home/.aws/credentials", "x\n", "name"),
        ("a.py", f"one = 1\nTOKEN = '{TOKEN}'\n", "line 2"),
        ("wide.txt", f"token {TOKEN}\n".encode("utf-16"), "github"),
        ("broken.bin", b"\xff\xfa\x00" + TOKEN.encode() + b"\x00", "github"),
    ],
)
def test_secrets_are_left_out_and_said(repo: Repo, name: str, text: str | bytes, why: str) -> None:
    repo.base()
    with engine(repo.folder) as made:
        said = complete(made, repo.write(name, text), repo.write("fine"))
    record = records(repo)[-1]
    assert record["outcome"] == "committed"
    assert repo.changed() == {"fine"}
    assert why in record["left_out"][name]
    assert "Left out" in said
    assert os.path.basename(name) in said
    assert TOKEN not in said
    assert name in repo.status()


@pytest.mark.parametrize("name", [".env.example", "env.py", "environment", "keys.py", "monkey"])
def test_names_that_only_look_like_secrets_are_committed(repo: Repo, name: str) -> None:
    repo.base()
    assert auto(repo, repo.write(name))["outcome"] == "committed"


def test_a_deleted_env_file_is_committed(repo: Repo) -> None:
    repo.base(**{".env": "A=1\n"})
    os.remove(repo.folder / ".env")
    assert auto(repo, str(repo.folder / ".env"))["outcome"] == "committed"
    assert repo.changed() == {".env"}


def test_session_edits_only_beside_untracked_secrets_and_staged_work(repo: Repo) -> None:
    repo.base()
    repo.write(".env", "SECRET=1\n")
    repo.write("cache/x.bin")
    repo.write("b", "staged before\n")
    repo.git("add", "b")
    auto(repo, repo.write("a"))
    assert repo.changed() == {"a"}
    assert repo.status() == "A  b\n?? .env\n?? cache/x.bin"


def test_filters_behave_as_the_users(repo: Repo) -> None:
    repo.base(**{".gitattributes": "*.txt filter=up\n*.crlf text eol=crlf\n"})
    repo.git("config", "filter.up.clean", "tr a-z A-Z")
    repo.git("config", "filter.up.smudge", "cat")
    auto(repo, repo.write("a.txt", "loud\n"), repo.write("b.crlf", "one\r\ntwo\r\n"))
    assert repo.git("cat-file", "-p", "HEAD:a.txt") == "LOUD"
    assert repo.git("cat-file", "-p", "HEAD:b.crlf") == "one\ntwo"


def test_a_sparse_checkout_keeps_what_it_hides(repo: Repo) -> None:
    repo.base(**{"in/a": "1\n", "out/b": "1\n"})
    repo.git("sparse-checkout", "set", "in")
    for target in ("current", "session"):
        record = auto(repo, repo.write("in/a", f"{target}\n"), repo.write(f"out/{target}"), target=target)
        assert record["outcome"] == "committed"
        assert repo.changed(record["commit"]) == {"in/a", f"out/{target}"}
        assert "out/b" in repo.git("ls-tree", "-r", "--name-only", record["commit"])


def test_a_monitor_in_the_repositorys_settings_is_not_run(repo: Repo, tmp_path: Path) -> None:
    repo.base()
    script = tmp_path / "monitor"
    script.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    script.chmod(0o755)
    repo.git("config", "core.fsmonitor", str(script))
    (tmp_path / "ran").unlink(missing_ok=True)
    assert auto(repo, repo.write("a"))["outcome"] == "committed"
    assert not (tmp_path / "ran").exists()


# -- damage ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["current", "session"])
def test_a_corrupt_index_fails_and_stays_as_it_is(repo: Repo, target: str) -> None:
    before = repo.base()
    index = repo.folder / ".git" / "index"
    index.write_bytes(b"nonsense" * 10)
    record = auto(repo, repo.write("a"), target=target)
    assert (record["outcome"], repo.head) == ("failed", before)
    assert "index" in record["reason"]
    assert index.read_bytes() == b"nonsense" * 10
    index.unlink()
    repo.git("reset", "-q")
    repo.clean()


def test_a_record_that_cannot_be_written_is_said(repo: Repo) -> None:
    repo.base()
    os.makedirs(repo.folder / ".hookturn" / "auto-commit.jsonl")
    with engine(repo.folder) as made:
        said = complete(made, repo.write("a"))
    assert "committed" in said
    assert "could not be recorded" in said


def test_a_linked_hookturn_folder_is_not_followed(repo: Repo, tmp_path: Path) -> None:
    before = repo.base()
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", repo.folder / ".hookturn")
    with engine(repo.folder) as made:
        assert "failed" in complete(made, repo.write("a"))
    assert repo.head == before
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.parametrize(("path", "words"), [("old", "2.30"), ("", "not installed")])
def test_a_git_that_cannot_be_used_is_said_clearly(
    repo: Repo, tmp_path: Path, monkeypatch, path: str, words: str
) -> None:
    before = repo.base()
    folder = tmp_path / "bin"
    folder.mkdir()
    if path:
        (folder / "git").write_text("#!/bin/sh\necho git version 2.30.2\n")
        (folder / "git").chmod(0o755)
    written = repo.write("a")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(folder))
        record = auto(repo, written)
        with engine(repo.folder) as made, made.session() as session:
            assert words in "".join(session.warnings)
    assert (record["outcome"], repo.head) == ("skipped", before)
    assert words in record["reason"]


# -- other targets ----------------------------------------------------------------------------------------


def test_a_sessions_own_ref_leaves_branch_and_index_untouched(repo: Repo) -> None:
    base = repo.base(a="1\n")
    repo.write("staged", "mine\n")
    repo.git("add", "staged")
    index = (repo.folder / ".git" / "index").read_bytes()
    first = auto(repo, repo.write("a", "2\n"), repo.write("new"), target="session")
    assert (first["outcome"], first["ref"], first["parent"]) == ("committed", "refs/hookturn/s1", base)
    second = auto(repo, str(repo.folder / "a"), repo.write("new", "2\n"), target="session")
    assert (second["parent"], second["paths"]) == (first["commit"], ["new"])
    third = auto(repo, str(repo.folder / "a"), target="session")
    assert third["outcome"] == "nothing to do"
    assert (repo.head, repo.git("branch", "--list")) == (base, "* main")
    assert (repo.folder / ".git" / "index").read_bytes() == index
    assert repo.git("ls-tree", "-r", "--name-only", "refs/hookturn/s1").split() == ["a", "base.txt", "new"]
    assert repo.git("worktree", "list").count("\n") == 0
    repo.clean()


def test_a_file_that_changed_in_the_moment_of_the_index_is_seen(repo: Repo) -> None:
    """Its size and times are those that the index has: git then compares contents, by the time of the index."""
    repo.base(a="1\n")
    repo.git("config", "core.trustctime", "false")  # which cannot be set
    path, index = repo.folder / "a", repo.folder / ".git" / "index"
    moment = (1_700_000_000, 1_700_000_000)
    os.utime(path, moment)
    repo.git("update-index", "--refresh")
    with path.open("r+") as file:
        file.write("2\n")
    for each in (path, index):
        os.utime(each, moment)
    record = auto(repo, str(path), target="session")
    assert (record["outcome"], record["paths"]) == ("committed", ["a"])


def test_an_empty_repository_and_a_sessions_own_ref(repo: Repo) -> None:
    record = auto(repo, repo.write("a"), target="session")
    assert (record["outcome"], record["parent"]) == ("committed", "")
    assert repo.changed("refs/hookturn/s1") == {"a"}
    assert repo.status() == "?? a"


def test_another_branch(repo: Repo) -> None:
    base = repo.base()
    record = auto(repo, repo.write("a"), target="branch")
    assert (record["ref"], repo.head) == ("refs/heads/hookturn/s1", base)
    assert repo.git("rev-parse", "hookturn/s1^") == base
    repo.write("a", "2\n")
    repo.git("checkout", "-qf", "-b", "elsewhere")
    repo.git("branch", "-qf", "hookturn/s1", "HEAD")
    repo.git("checkout", "-q", "hookturn/s1")
    record = auto(repo, str(repo.folder / "a"), target="branch")
    assert record["outcome"] == "skipped"
    assert "checked out" in record["reason"]


@pytest.mark.parametrize(
    "session",
    ["../../x", "x" * 5000, "new\nline", "CON", "a..b", "a.lock", "-x", "@{", "a b~^:?*[\\", "\ud800", "."],
)
@pytest.mark.parametrize("target", ["session", "branch", "current"])
def test_session_ids_are_harmless(repo: Repo, session: str, target: str) -> None:
    repo.base()
    with engine(repo.folder, target=target) as made:
        said = complete(made, repo.write("a"), session=session)
    [record] = records(repo)
    assert record["outcome"] == "committed", said
    assert record["session_id"] == session
    repo.git("check-ref-format", record["ref"])
    trailers = repo.git("log", "-1", "--format=%(trailers:key=Hookturn-Session,valueonly)", record["commit"])
    assert trailers.strip() and "\n" not in trailers.strip()
    repo.clean()


# -- when, and what it says -------------------------------------------------------------------------------


def test_only_every_so_many_turns(repo: Repo) -> None:
    repo.base()
    with engine(repo.folder, every=3) as made:
        said = [complete(made, repo.write(f"f{n}"), turn=n) for n in range(1, 7)]
    assert [bool(text) for text in said] == [False, False, True, False, False, True]
    assert repo.changed("HEAD~1") == {"f1", "f2", "f3"}
    assert repo.changed() == {"f4", "f5", "f6"}


def test_a_turn_that_goes_on_is_one_turn(repo: Repo) -> None:
    class Again:
        @hookimpl
        def on_turn_complete(self, event):
            return Continue("more") if event.continued < 2 else None

    repo.base()
    made = Engine(plugins=[Again()], project_dir=repo.folder)
    made.register(plugin(config(every=2)), "auto-commit", layer="builtin")
    with made, made.session(session_id="s", cwd=repo.folder) as session:
        for number in range(2):
            with session.turn() as turn:
                turn.call_tool(
                    "write",
                    {"file_path": str(repo.folder / f"f{number}"), "content": ""},
                    execute=lambda n=number, **_: repo.write(f"f{n}"),
                )
                while turn.complete("x").again:
                    pass
    assert [record["outcome"] for record in records(repo)] == ["committed"]
    assert repo.changed() == {"f0", "f1"}


def play(made: Engine, repo: Repo, prompt: str, *calls: tuple[str, dict, object]) -> list[str]:
    with made.session(session_id="s1", agent="coder", cwd=repo.folder) as session:
        session.submit(prompt)
        with session.turn() as turn:
            for tool, args, body in calls:
                turn.call_tool(tool, args, execute=lambda _body=body, **_: _body())
            return turn.complete("done").warnings


def test_a_whole_session(repo: Repo) -> None:
    repo.base()
    made = Engine(project_dir=repo.folder)
    made.register(plugin(config()), "auto-commit", layer="builtin")
    from hookturn_builtins.audit_log import plugin as audit

    made.register(audit(), "audit-log", layer="builtin")
    with made:
        said = play(
            made, repo, f"Fix the bug in {TOKEN}\nsecond line",
            ("write", {"file_path": "a.py", "content": "x"}, lambda: repo.write("a.py")),
            ("bash", {"command": "touch b"}, lambda: repo.write("b")),
        )  # fmt: skip
    assert any("committed" in text and "a.py" in text for text in said)
    assert repo.changed() == {"a.py"}
    lines = repo.git("log", "-1", "--format=%B").split("\n")
    assert lines[0].startswith("Fix the bug in [REDACTED:")
    assert TOKEN not in "\n".join(lines)
    trailers = dict(
        line.split(": ", 1) for line in repo.git("log", "-1", "--format=%(trailers:only)").split("\n") if line
    )
    assert (trailers["Hookturn-Session"], trailers["Hookturn-Turn"]) == ("s1", "1")
    heads = [
        __import__("hashlib").sha256(line).hexdigest()
        for line in (repo.folder / ".hookturn" / "audit.jsonl").read_bytes().splitlines()
    ]
    assert trailers["Hookturn-Audit-Head"] in heads


def test_a_denied_call_touches_nothing(repo: Repo) -> None:
    from hookturn import Deny

    class No:
        @hookimpl
        def pre_tool_execution(self, event):
            return Deny("no") if Path(event.args["file_path"]).name == "b" else None

    repo.base()
    repo.write("b", "the user's own\n")
    made = Engine(plugins=[No()], project_dir=repo.folder)
    made.register(plugin(config()), "auto-commit", layer="builtin")
    with made:
        play(
            made,
            repo,
            "x",
            *(
                (
                    "write",
                    {"file_path": str(repo.folder / name), "content": ""},
                    lambda name=name: repo.write(name),
                )
                for name in ("a", "b")
            ),
        )
    assert repo.changed() == {"a"}


def test_write_tools_count_even_where_the_host_lists_no_files(repo: Repo) -> None:
    repo.base()
    with engine(repo.folder) as made:
        made.fire(
            events.PostToolExecution(
                tool="write", args={"file_path": repo.write("a"), "content": ""}, session_id="s1"
            )
        )
        made.fire(
            events.PostToolExecution(
                tool="write",
                args={"file_path": repo.write("b"), "content": ""},
                session_id="s1",
                status="denied",
            )
        )
        made.fire(events.PostToolExecution(tool="read", args={"file_path": repo.write("c")}, session_id="s1"))
        made.fire(
            events.PostToolExecution(
                tool="write", args={"file_path": repo.write("d"), "content": ""}, session_id="s2"
            )
        )
        complete(made)
    assert repo.changed() == {"a"}


def test_files_of_sub_agents_are_the_sessions(repo: Repo) -> None:
    repo.base()
    with engine(repo.folder) as made:
        assert complete(made, repo.write("a"), agent_id="r1") == ""
        complete(made, repo.write("b"))
    assert repo.changed() == {"a", "b"}


@pytest.mark.parametrize("include", [False, True])
def test_what_shell_commands_changed(repo: Repo, include: bool) -> None:
    repo.base(clean="1\n", dirty="1\n", gone="1\n")
    repo.write("dirty", "the user's\n")
    repo.write("untracked", "the user's\n")

    def shell():
        for name in ("clean", "dirty", "untracked", "made", "dir/made"):
            repo.write(name, "by the shell\n")
        os.remove(repo.folder / "gone")

    made = engine(repo.folder, include_shell=include)
    with made:
        play(made, repo, "x", ("bash", {"command": "make"}, shell))
        if include:
            assert repo.changed() == {"clean", "made", "dir/made", "gone"}
            play(made, repo, "x", ("read", {"file_path": "clean"}, lambda: repo.write("by-the-user")))
            assert repo.changed() == {"clean", "made", "dir/made", "gone"}
        else:
            assert records(repo)[-1]["outcome"] == "nothing to do"


def test_what_could_not_be_committed_waits_for_the_next_time(repo: Repo) -> None:
    repo.base()
    (repo.folder / ".git" / "MERGE_HEAD").write_text(repo.head + "\n")
    with engine(repo.folder) as made:
        assert "skipped: a merge is in progress" in complete(made, repo.write("a"), turn=1)
        (repo.folder / ".git" / "MERGE_HEAD").unlink()
        assert "committed" in complete(made, repo.write("b"), turn=2)
        assert complete(made, turn=3) == ""
    assert records(repo)[-1]["outcome"] == "nothing to do"
    assert repo.changed() == {"a", "b"}


def test_every_outcome_is_logged(repo: Repo, hook_log) -> None:
    repo.base()
    with engine(repo.folder) as made:
        complete(made, repo.write("a"))
        complete(made, turn=2)
        (repo.folder / ".git" / "MERGE_HEAD").write_text(repo.head + "\n")
        complete(made, repo.write("b"), turn=3)
    said = hook_log.of("auto-commit")
    assert [text.split()[1].rstrip(":") for text in said] == ["committed", "nothing", "skipped"]


def test_a_dry_run_only_says_what_it_would_do(repo: Repo, tmp_path: Path) -> None:
    before = repo.base()
    paths = [repo.write("base.txt", "2\n"), repo.write("new"), repo.write(".env")]
    files = {path: path.stat().st_mtime_ns for path in (repo.folder / ".git").rglob("*")}
    for target in ("current", "session"):
        with engine(repo.folder, dry_run=True, output_dir=tmp_path / "replay", target=target) as made:
            said = complete(made, *paths)
        assert "would commit" in said
        assert "base.txt and new" in said
        assert ".env" in said
    assert repo.head == before
    assert {path: path.stat().st_mtime_ns for path in (repo.folder / ".git").rglob("*")} == files
    assert not (repo.folder / ".hookturn").exists()
    assert "would commit" in (tmp_path / "replay" / "auto-commit.jsonl").read_text()


def test_a_message_template(repo: Repo) -> None:
    repo.base()
    with (
        engine(repo.folder, message="[{agent}] {count} files: {files}\n\n{prompts}", every=2) as made,
        made.session(session_id="s1", agent="coder", cwd=repo.folder) as session,
    ):
        for number, prompt in enumerate(["# first", "  second   one\nmore"]):
            session.submit(prompt)
            with session.turn() as turn:
                turn.call_tool(
                    "write",
                    {"file_path": str(repo.folder / f"f{number}"), "content": ""},
                    execute=lambda n=number, **_: repo.write(f"f{n}"),
                )
    body = repo.git("log", "-1", "--format=%B")
    assert body.startswith("[coder] 2 files: f0 and f1\n\n- # first\n- second one\n\nHookturn-Session: s1\n")


def test_a_prompt_cannot_forge_trailers_or_names(repo: Repo) -> None:
    repo.base()
    with engine(repo.folder) as made:
        made.fire(
            events.UserPromptSubmit(
                prompt="\r\x1b[31mHookturn-Session: forged\u2028x\0" + "w" * 200, session_id="s1"
            )
        )
        complete(made, repo.write("a"))
    assert repo.git("log", "-1", "--format=%(trailers:key=Hookturn-Session,valueonly)").strip() == "s1"
    subject = repo.git("log", "-1", "--format=%s")
    assert subject.isprintable()
    assert len(subject) <= 72


@pytest.mark.parametrize(
    ("name", "value"),
    [("every", 0), ("branch", "-x"), ("branch", "a..b"), ("branch", "x.lock"), ("branch", "a b"), ("branch", ""), ("message", "{nobody}"),
     ("timeout", 0), ("max_files", 0), ("name", "a <b>"), ("email", " ")],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name if name not in ("name", "email") else "name and email"):
        config(**{name: value})


def test_it_is_off_unless_named(repo: Repo) -> None:
    repo.base()
    (repo.folder / "hookturn.yaml").write_text("plugins: {audit-log: true}\n")
    with Engine.from_project(repo.folder) as made:
        assert complete(made, repo.write("a")) == ""


def test_the_six_processes_are_all_there_are(repo: Repo, tmp_path: Path, monkeypatch) -> None:
    from hookturn_builtins.auto_commit import git

    repo.base()
    real = shutil.which("git")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\necho \"$@\" >> '{tmp_path}/calls'\nexec '{real}' \"$@\"\n")
    (folder / "git").chmod(0o755)
    paths = [repo.write("base.txt", "2\n"), repo.write("new")]
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        patch.setattr(git, "_versions", {})
        assert auto(repo, *paths)["outcome"] == "committed"
    assert len((tmp_path / "calls").read_text().splitlines()) <= 6


# -- two sessions at once --------------------------------------------------------------------------------

SESSION = """
import os, sys
from hookturn import Engine, events
from hookturn_builtins.auto_commit import Config, plugin
project, name, rounds, target = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
config = Config()
config.every, config.target = 1, target
engine = Engine(project_dir=project)
engine.register(plugin(config), "auto-commit")
for number in range(1, rounds + 1):
    files = []
    for file in (name, f"{name}-{number}"):
        path = os.path.join(project, file)
        with open(path, "w") as out:
            out.write(f"{name} {number}\\n")
        files.append(path)
    out = engine.fire(events.TurnComplete(session_id=name, turn=number, edited_files=files))
    print(out.warnings[0], flush=True)
"""


@pytest.mark.parametrize("target", ["current", "session"])
def test_two_sessions_do_not_disturb_each_other(repo: Repo, target: str) -> None:
    import sys

    repo.base()
    repo.write("staged", "mine\n")
    repo.git("add", "staged")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SESSION, str(repo.folder), name, "8", target],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    for process in running:
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert [("committed" in line) for line in said.splitlines()] == [True] * 8, said
    for name in ("one", "two"):
        ref = "HEAD" if target == "current" else f"refs/hookturn/{name}"
        log = repo.git("log", "--format=%H %(trailers:key=Hookturn-Session,valueonly)", ref).split("\n")
        mine = [line.split()[0] for line in log if line.endswith(f" {name}")]
        assert len(mine) == 8
        for number, commit in zip(range(8, 0, -1), mine, strict=True):
            assert repo.changed(commit) == {name, f"{name}-{number}"}
    assert repo.git("diff", "--cached", "--name-only") == "staged"
    assert len(records(repo)) == 16
    repo.clean()


def test_undo_without_a_commit_is_refused(repo: Repo) -> None:
    from hookturn_builtins.auto_commit.undo import undo

    repo.base()
    auto(repo)
    with pytest.raises(HookturnError, match="no auto-commit"):
        undo(str(repo.folder), os.environ)
