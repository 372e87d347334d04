"""Which files count for a project, and whose they must be."""

from __future__ import annotations

import os

import pytest

from hookturn import paths
from hookturn.project import layers
from hookturn.project.layers import find, project_root


def said(problems):
    return [str(problem) for problem in problems]


def found(root, **options):
    result, problems = find(str(root), **options)
    return [(layer.name, layer.label, layer.authority) for layer in result], said(problems)


def test_nothing_is_found_in_an_empty_folder(tmp_path):
    assert found(tmp_path) == ([], [])


def test_all_layers_in_order(project):
    project.config("mode: enforce\n")
    project.user("mode: enforce\n")
    project.managed("mode: enforce\n")
    names, problems = found(project.folder)
    assert [name for name, _, _ in names] == ["managed", "user", "project"]
    assert [label for _, label, _ in names] == [
        str(paths.managed_config()),
        str(paths.config_root() / "hookturn.yaml"),
        "hookturn.yaml",
    ]
    assert all(authority for _, _, authority in names)
    assert problems == []


@pytest.mark.parametrize("name", ["hookturn.yaml", ".hookturn/hookturn.yaml"])
def test_relative_paths_start_at_the_declaring_file(project, name):
    path = project.write(name, "hooks: []\n")
    ((layer,), _) = find(str(project.folder))
    assert (layer.path, layer.base_dir, layer.label) == (str(path), str(path.parent), name)


def test_a_project_has_one_configuration(project):
    project.config("mode: enforce\n")
    project.write(".hookturn/hookturn.yaml", "mode: monitor\n")
    project.write("pyproject.toml", "[tool.hookturn]\nmode = 'monitor'\n")
    names, problems = found(project.folder)
    assert names == [("project", "hookturn.yaml", True)]
    assert problems == [
        ".hookturn/hookturn.yaml: the project has a configuration in hookturn.yaml already. Merge the two; this one is ignored.",
        "pyproject.toml: the project has a configuration in hookturn.yaml already. Merge the two; this one is ignored.",
    ]


def test_pyproject(project):
    project.write("pyproject.toml", "[project]\nname = 'x'\n")
    assert found(project.folder) == ([], [])
    project.write("pyproject.toml", "[tool.hookturn]\nmode = 'monitor'\n")
    assert found(project.folder) == ([("project", "pyproject.toml", True)], [])


def test_the_usual_wrong_name_is_noticed(project):
    project.write("hookturn.yml", "mode: enforce\n")
    names, problems = found(project.folder)
    assert names == []
    assert problems == ["hookturn.yml: a file of this name is not read. Rename it to hookturn.yaml."]


@pytest.mark.parametrize("kind", ["folder", "fifo", "dangling", "unreadable"])
def test_what_is_no_file_is_said_and_is_a_broken_layer(project, kind):
    path = project.folder / "hookturn.yaml"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "dangling":
        path.symlink_to("nowhere")
    else:
        if os.geteuid() == 0:
            pytest.skip("root reads everything")
        path.write_text("mode: enforce\n")
        path.chmod(0)
    result, problems = find(str(project.folder))
    assert [layer.document.broken for layer in result] == [True]
    assert said(problems)[0].startswith("hookturn.yaml: cannot be read: ")


def test_a_file_given_by_name_takes_the_projects_place(project, tmp_path):
    project.config("mode: enforce\n")
    other = tmp_path / "other.yaml"
    other.write_text("mode: monitor\n")
    ((layer,), problems) = find(str(project.folder), with_config=other)
    assert (layer.name, layer.path, layer.given, problems) == ("project", str(other), True, [])
    result, problems = find(str(project.folder), with_config=tmp_path / "nosuch.yaml")
    assert result == []
    assert said(problems) == [f"{tmp_path}/nosuch.yaml: cannot be read: there is no such file. Correct it."]


@pytest.mark.parametrize("place", ["file", "folder"])
def test_a_managed_file_that_others_can_write_has_no_authority(project, place):
    path = project.managed("mode: enforce\n")
    (path if place == "file" else path.parent).chmod(0o777)
    names, problems = found(project.folder)
    assert names == [("managed", str(path), False)]
    assert "is writable by others than root" in problems[0]


def test_a_managed_file_must_be_roots(project, monkeypatch):
    project.managed("mode: enforce\n")
    monkeypatch.setattr(layers, "MANAGED_OWNER", os.geteuid() + 1)
    names, problems = found(project.folder)
    assert names[0][2] is False
    assert f"belongs to user {os.geteuid()}, not to root" in problems[0]


def test_a_user_file_that_everybody_can_write_has_no_authority(project):
    project.user("mode: enforce\n").chmod(0o666)
    names, problems = found(project.folder)
    assert names[0][2] is False
    assert "it is writable by everybody" in problems[0]


# -- what was read before -----------------------------------------------------------------------------


def test_a_file_that_was_read_before_is_not_parsed_again(project, monkeypatch):
    project.config("hooks:\n  - {name: a, config: {x: [1, 2.5, null, true]}}\n")
    ((first,), _) = find(str(project.folder))
    monkeypatch.setattr(
        "hookturn.project.yaml_document.read_yaml", lambda *_: pytest.fail("the file was parsed")
    )
    ((again,), _) = find(str(project.folder))
    assert again.document.data == first.document.data
    for path in (("hooks",), ("hooks", 0, "name"), ("hooks", 0, "config", "x", 2)):
        assert again.document.at(path) == first.document.at(path)
        assert again.document.at(path, key=True) == first.document.at(path, key=True)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"data": [], "keys": [], "values": []}', b'{"data": {}, "keys": 3}']
)
def test_a_damaged_cache_is_not_believed(project, content):
    project.config("mode: monitor\n")
    find(str(project.folder))
    (path,) = (paths.state_root() / "cache").glob("yaml-*.json")
    path.write_bytes(content)
    ((layer,), problems) = find(str(project.folder))
    assert (layer.document.data, problems) == ({"mode": "monitor"}, [])


def test_a_file_with_problems_tells_them_each_time(project):
    project.config("a: 1\na: 2\n")
    for _ in range(2):
        ((layer,), _) = find(str(project.folder))
        assert len(layer.document.problems) == 1


# -- the root -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["hookturn.yaml", ".hookturn/hookturn.yaml", ".git/HEAD", "pyproject.toml"])
def test_the_nearest_marked_folder_is_the_root(project, mark):
    project.write(mark, "[tool.hookturn]\n")
    deep = project.folder / "a" / "b"
    deep.mkdir(parents=True)
    assert project_root(deep, environ={}) == str(project.folder)
    (deep.parent / "hookturn.yaml").write_text("")
    assert project_root(deep, environ={}) == str(deep.parent)


def test_the_hookturn_folder_is_not_the_root(project):
    project.write(".hookturn/hookturn.yaml", "")
    assert project_root(project.folder / ".hookturn", environ={}) == str(project.folder)


def test_the_users_own_file_is_not_a_projects_too(project):
    path = project.user("hooks: []\n")
    assert found(path.parent) == ([("user", str(path), True)], [])


def test_without_a_mark_the_folder_itself_is_the_root(tmp_path, monkeypatch):
    monkeypatch.setattr(layers, "_is_root", lambda folder: False)
    assert project_root(tmp_path, environ={}) == str(tmp_path)
    assert project_root(tmp_path / "nosuch", environ={}) == str(tmp_path / "nosuch")
    monkeypatch.chdir(tmp_path)
    assert project_root(environ={}) == str(tmp_path)


def test_the_agents_variable_names_the_root_and_an_argument_wins(project, tmp_path):
    project.config("")
    other = tmp_path / "other"
    other.mkdir()
    environ = {"CLAUDE_PROJECT_DIR": str(other)}
    assert project_root(environ=environ) == str(other)
    assert project_root(project.folder, environ=environ) == str(project.folder)
    environ["GEMINI_PROJECT_DIR"] = str(project.folder)
    assert project_root(environ=environ) == str(project.folder)


def test_a_variable_that_names_no_folder_is_ignored(project, monkeypatch):
    project.config("")
    monkeypatch.chdir(project.folder)
    for value in ("", "relative", "/nonexistent"):
        assert project_root(environ={"CLAUDE_PROJECT_DIR": value}) == str(project.folder)


def test_an_agent_started_in_a_sub_folder_is_in_the_project(project):
    project.write("hookturn.yaml", "mode: enforce\n")
    below = project.folder / "a/b"
    below.mkdir(parents=True)
    assert project_root(environ={"CLAUDE_PROJECT_DIR": str(below)}) == str(project.folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user's folder")
def test_another_users_folder_is_no_root(project):
    project.config("")
    deep = project.folder / "mine"
    deep.mkdir()
    os.chown(project.folder, 12345, 12345)
    assert project_root(deep, environ={}) != str(project.folder)
