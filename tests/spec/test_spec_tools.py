"""Tool views: the same meaning for every agent's names and shapes, and rewrites translated back."""

from __future__ import annotations

import os

import pytest

from hookturn import AnswerError, Engine, Rewrite, Tool, events, hookimpl


def pre(tool, args, **fields):
    return events.PreToolExecution(tool=tool, args=args, **fields)


def post(result, tool="bash", **args):
    return events.PostToolExecution(tool=tool, args=args, result=result)


class Rewrites:
    def __init__(self, *value, **fields):
        self.answer = Rewrite(*value, **fields)

    @hookimpl
    def pre_tool_execution(self, event):
        return self.answer

    @hookimpl
    def post_tool_execution(self, event):
        return self.answer


def rewritten(event, *value, tools=None, **fields):
    out = Engine([Rewrites(*value, **fields)], tools=tools).fire(event)
    assert not out.failures, out.failures
    return out.event


KINDS = {
    "bash": ["Bash", "bash", "shell", "run_shell_command", "exec_command", "execute_command", "local_shell", "PowerShell"],
    "read": ["Read", "read", "read_file", "view", "NotebookRead", "read_many_files"],
    "write": [
        "Write", "Edit", "MultiEdit", "NotebookEdit", "write_file", "edit_file", "replace", "apply_patch", "create",
        "str_replace_editor",
    ],
    "fetch": ["WebFetch", "webfetch", "web_fetch", "fetch"],
    "search": ["Grep", "Glob", "LS", "grep", "WebSearch", "google_web_search", "list_directory", "search_file_content"],
    "agent": ["Task", "Agent", "spawn_agent"],
    "other": ["TodoWrite", "mcp__git__push", "anything", "", "Bash ", "bashh"],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in KINDS.items() for name in names])
def test_usual_names_have_kinds(kind, name):
    assert pre(name, {}).kind == kind


def test_a_host_brings_its_own_table():
    tools = {"save": Tool("write", paths=["target"]), "Bash": Tool("other")}
    engine = Engine(tools=tools)
    event = engine.fire(pre("save", {"target": "a.txt"}, cwd="/project")).event
    assert (event.kind, event.paths) == ("write", ["/project/a.txt"])
    assert engine.fire(pre("Bash", {"command": "ls"})).event.kind == "other"
    assert engine.fire(pre("Read", {})).event.kind == "read", "usual names stay"


def test_a_tool_row_is_checked():
    with pytest.raises(AnswerError, match="unknown tool kind 'edit'"):
        Tool("edit")


@pytest.mark.parametrize(
    ("name", "args", "command"),
    [
        ("Bash", {"command": "ls -l"}, "ls -l"),
        ("exec_command", {"cmd": "ls"}, "ls"),
        ("shell", {"command": ["bash", "-lc", "ls | wc"]}, "ls | wc"),
        ("shell", {"command": ["/usr/bin/zsh", "-c", "ls"]}, "ls"),
        ("shell", {"command": ["git", "commit", "-m", "two words"]}, "git commit -m 'two words'"),
        ("shell", {"command": ["python3", "-c", "print(1)"]}, "python3 -c 'print(1)'"),
        ("shell", {"command": ["bash", "-c", "a", "b"]}, "bash -c a b"),
        ("Bash", {"command": ""}, ""),
        ("Bash", {}, ""),
        ("Bash", {"command": None}, ""),
        ("Bash", {"command": 5}, ""),
        ("Bash", {"command": []}, ""),
        ("Bash", {"command": ["ls", 5]}, ""),
        ("Bash", {"command": None, "cmd": "ls"}, "ls"),
        ("Read", {"command": "ls"}, ""),
        ("Bash", {"command": "\ud800\0"}, "\ud800\0"),
    ],
)
def test_command(name, args, command):
    assert pre(name, args).command == command


PATCH = """*** Begin Patch
*** Add File: new.py
+*** Update File: not a header
*** Update File: old.py
*** Move to: moved.py
@@
-a
+b
*** Delete File: gone.py
*** End Patch
"""
UNIFIED = """diff --git a/x.py b/x.py
--- a/x.py
+++ b/x.py
@@ -1 +1 @@
-a
+b
--- /dev/null
+++ b/new.py\t2026-01-01
rename from r1
rename to r2
"""


@pytest.mark.parametrize(
    ("name", "args", "paths"),
    [
        ("Read", {"file_path": "/a/b"}, ["/a/b"]),
        ("Read", {"file_path": "b"}, ["/project/b"]),
        ("Read", {"file_path": "./x/../b"}, ["/project/b"]),
        ("Read", {"file_path": "../b"}, ["/b"]),
        ("Read", {"file_path": "file:///a/b"}, ["/a/b"]),
        ("read_file", {"absolute_path": "/a"}, ["/a"]),
        ("read_many_files", {"paths": ["a", "/b", "a"]}, ["/project/a", "/b"]),
        ("NotebookEdit", {"notebook_path": "n.ipynb"}, ["/project/n.ipynb"]),
        ("edit", {"filePath": "a"}, ["/project/a"]),
        ("Read", {"file_path": ""}, []),
        ("Read", {"file_path": None}, []),
        ("Read", {"file_path": 7}, []),
        ("Read", {}, []),
        ("Read", {"paths": ["a", 7, None, ""]}, ["/project/a"]),
        ("apply_patch", {"input": PATCH}, ["new.py", "old.py", "moved.py", "gone.py"]),
        ("apply_patch", {"command": ["apply_patch", PATCH]}, ["new.py", "old.py", "moved.py", "gone.py"]),
        ("apply_patch", {"patch": UNIFIED}, ["x.py", "new.py", "r1", "r2"]),
        ("Grep", {"path": "src", "pattern": "x"}, ["src"]),
        ("Bash", {"command": "cat /etc/passwd"}, []),
        ("Read", {"file_path": "a\0b\ud800"}, ["/project/a\0b\ud800"]),
        ("Read", {"file_path": "~a\0b"}, ["/project/~a\0b"]),
        ("Read", {"file_path": "~\ud800/x"}, ["/project/~\ud800/x"]),
    ],
)
def test_paths_are_absolute_and_named_once(name, args, paths):
    wanted = [path if path.startswith("/") else f"/project/{path}" for path in paths]
    assert pre(name, args, cwd="/project").paths == wanted


def test_home_is_expanded_and_relative_paths_stay_without_a_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert pre("Read", {"file_path": "~/.ssh/id"}).paths == ["/home/me/.ssh/id"]
    assert pre("Read", {"file_path": "a/./b"}).paths == [os.path.normpath("a/b")]


@pytest.mark.parametrize(
    ("name", "args", "urls"),
    [
        ("WebFetch", {"url": "https://a.b/c", "prompt": "https://other"}, ["https://a.b/c"]),
        ("fetch", {"urls": ["https://a", "https://b", "https://a"]}, ["https://a", "https://b"]),
        (
            "web_fetch",
            {"prompt": "sum up https://a.b/c and (http://d.e) now"},
            ["https://a.b/c", "http://d.e"],
        ),
        ("WebFetch", {}, []),
        ("WebFetch", {"url": 5}, []),
        ("mcp__web__get", {"url": "https://a"}, ["https://a"]),
        ("Bash", {"url": "https://a"}, []),
    ],
)
def test_urls(name, args, urls):
    assert pre(name, args).urls == urls


@pytest.mark.parametrize(
    ("name", "mcp"),
    [
        ("mcp__git__push", ("git", "push")),
        ("mcp__my_server__a__b", ("my_server", "a__b")),
        ("mcp__git", None),
        ("mcp__git__", None),
        ("mcp____push", None),
        ("Bash", None),
        ("xmcp__a__b", None),
    ],
)
def test_mcp(name, mcp):
    assert pre(name, {}).mcp == mcp


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("text", "text"),
        ("", ""),
        (None, ""),
        ({"stdout": "out", "stderr": "err", "interrupted": False}, "out\nerr"),
        ({"stdout": "out", "stderr": ""}, "out"),
        ({"stdout": "", "stderr": "err"}, "err"),
        ({"output": "out"}, "out"),
        ({"llmContent": "out", "returnDisplay": "x"}, "out"),
        ({"llmContent": [{"text": "a"}, {"text": "b"}]}, "a\nb"),
        ({"textResultForLlm": "out"}, "out"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "…"}]}, "a"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        (["a", "b"], "a\nb"),
        ({"aggregated_output": "out", "exit_code": 0}, "out"),
        ({"error": "bad"}, "bad"),
        ({"result": {"output": "deep"}}, "deep"),
        ({"output": "", "error": "bad"}, "bad"),
        ({"number": 1}, ""),
        ({}, ""),
        ([], ""),
        (42, "42"),
        (True, "True"),
    ],
)
def test_result_text(result, text):
    assert post(result).result_text == text
    assert pre("bash", {}).result_text == ""


class NoText:
    def __str__(self):
        raise RuntimeError("no text")


def test_a_result_without_a_text_form_does_not_break_the_view():
    event = post(NoText())
    assert "NoText" in event.result_text
    assert "NoText" in event.to_json()["result_text"]


@pytest.mark.parametrize(
    ("name", "args", "changed"),
    [
        ("Bash", {"command": "rm x", "timeout": 5}, {"command": "ls y", "timeout": 5}),
        ("exec_command", {"cmd": "rm x"}, {"cmd": "ls y"}),
        ("shell", {"command": ["bash", "-lc", "rm x"]}, {"command": ["bash", "-lc", "ls y"]}),
        ("shell", {"command": ["rm", "x"]}, {"command": ["/bin/sh", "-c", "ls y"]}),
        ("shell", {"command": ["python3", "-c", "x"]}, {"command": ["/bin/sh", "-c", "ls y"]}),
        ("Bash", {"command": None, "cmd": "rm x"}, {"command": None, "cmd": "ls y"}),
    ],
)
def test_rewriting_the_command(name, args, changed):
    event = rewritten(pre(name, args), command="ls y")
    assert event.args == changed
    assert event.command == "ls y"


@pytest.mark.parametrize(
    ("name", "args", "changed"),
    [
        ("Read", {"file_path": "/x", "limit": 5}, {"file_path": "/safe", "limit": 5}),
        ("read_many_files", {"paths": ["/x", "/y"]}, {"paths": ["/safe", "/y"]}),
        ("edit", {"filePath": "/x", "old": "a"}, {"filePath": "/safe", "old": "a"}),
        ("Read", {"file_path": "", "path": "/x"}, {"file_path": "", "path": "/safe"}),
        ("read_many_files", {"paths": ["", 7, "/x"]}, {"paths": ["", 7, "/safe"]}),
    ],
)
def test_rewriting_the_path(name, args, changed):
    event = rewritten(pre(name, args), path="/safe")
    assert event.args == changed
    assert event.paths[0] == "/safe"


def test_a_path_of_the_hosts_own_table_is_rewritten():
    tools = {"save": Tool("write", paths=["target"])}
    event = rewritten(pre("save", {"target": "/x"}), path="/safe", tools=tools)
    assert event.args == {"target": "/safe"}


@pytest.mark.parametrize(
    ("result", "changed"),
    [
        ("long", "short"),
        ({"stdout": "long", "stderr": "e", "code": 0}, {"stdout": "short", "stderr": "", "code": 0}),
        ({"output": "long", "code": 0}, {"output": "short", "code": 0}),
        ({"llmContent": [{"text": "long"}]}, {"llmContent": ["short"]}),
        (
            [{"type": "text", "text": "long"}, {"type": "text", "text": "b"}],
            [{"type": "text", "text": "short"}],
        ),
        ({"content": [{"type": "text", "text": "long"}]}, {"content": [{"type": "text", "text": "short"}]}),
        (["a", "b"], ["short"]),
        (None, "short"),
        ({"number": 1}, "short"),
        (42, "short"),
    ],
)
def test_rewriting_the_result_text_keeps_the_shape(result, changed):
    event = rewritten(post(result), result_text="short")
    assert event.result == changed
    assert event.result_text == "short"


@pytest.mark.parametrize(
    "result", ["long", {"stdout": "long", "stderr": "e"}, {"output": "long"}, ["a", "b"]]
)
def test_rewriting_the_result_text_to_nothing(result):
    assert rewritten(post(result), result_text="").result_text == ""


def test_both_the_main_field_and_a_view():
    event = rewritten(pre("Bash", {"command": "x"}), {"command": "y", "timeout": 1}, command="z")
    assert event.args == {"command": "z", "timeout": 1}
    event = rewritten(pre("Bash", {"command": "x"}), command="z", args={"command": "y", "timeout": 1})
    assert event.args == {"command": "z", "timeout": 1}, "a view goes on top, whatever the order"


@pytest.mark.parametrize(
    ("event", "fields", "words"),
    [
        (pre("Read", {"file_path": "/x"}), {"command": "ls"}, "no command"),
        (pre("Bash", {"command": "ls"}), {"path": "/x"}, "no path"),
        (pre("apply_patch", {"input": PATCH}), {"path": "/x"}, "no path"),
        (pre("Bash", {"command": "ls"}), {"command": ["ls"]}, "must be a str (a string in JSON)"),
        (pre("Read", {"file_path": "/x"}), {"path": None}, "must be a str (a string in JSON)"),
        (pre("Bash", {"command": "ls"}), {"result_text": "x"}, "result_text"),
        (pre("Bash", {"command": "ls"}), {"tool": "x"}, "args, command, path"),
        (pre("Bash", {"command": "ls"}), {"comand": "x"}, "did you mean 'command'"),
        (
            pre("Bash", {"command": "ls"}),
            {"args": "ls"},
            "args must be a dict (an object in JSON), got a string",
        ),
        (post("x"), {"command": "ls"}, "result, result_text"),
        (post("x"), {"result_text": 5}, "must be a str (a string in JSON)"),
        (post("x"), {"status": "ok"}, "result, result_text"),
    ],
)
def test_a_rewrite_that_cannot_be_is_a_failure_of_its_hook(event, fields, words):
    out = Engine([Rewrites(**fields)]).fire(event)
    assert out.event is event
    assert not out.rewrites
    [failure] = out.failures
    assert (failure.hook, failure.error_type) == ("Rewrites", "AnswerError")
    assert words in failure.message
