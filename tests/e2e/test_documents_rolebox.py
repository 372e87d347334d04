"""The first document's role.yaml and its modules, word for word, from trust to replay."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "documents" / "rolebox"
WORDS = "警告：{} 输出中发现 console.log()。"

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")


@pytest.fixture
def role(docs):
    """The document's complete example, in the language that is asked for."""

    def install(language="JavaScript"):
        shutil.copytree(DATA, docs.folder, dirs_exist_ok=True)
        if language == "Python":
            text = (DATA / "role.yaml").read_text(encoding="utf-8")
            docs.write("role.yaml", text.replace("hooks/no-console-log.js", "hooks/no_console_log.py"))
        return docs

    return install


LANGUAGES = ["JavaScript", "Python"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_trust_shows_what_would_run_and_nothing_runs_before(role, language):
    docs = role(language)
    called = {"tool": "write", "args": {"content": "console.log(1)"}, "result": "ok"}
    assert docs.fire("post_tool_execution", **called)["pending"] == ""
    pending = {item["what"]: list(item["files"]) for item in docs.trust()}
    module = "hooks/no-console-log.js" if language == "JavaScript" else "hooks/no_console_log.py"
    assert pending[f"runs {module} at tool.execute.after"] == [str(docs.folder / module)]
    assert docs.run("check")["problems"] == []
    assert docs.err == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_fire(role, language):
    docs = role(language)
    docs.trust()

    def say(tool, content):
        out = docs.fire("post_tool_execution", tool=tool, args={"content": content}, result="ok")
        assert out["failures"] == []
        return out["pending"]  # of the next system prompt

    assert say("write", "console.log(1)") == WORDS.format("write")
    assert say("edit", "x = console.log(") == WORDS.format("edit")
    assert say("write", "print(1)") == ""
    assert say("bash", "console.log(1)") == ""  # filter.tools
    # Other agents' tools of that kind are meant, too.
    assert say("Write", "console.log(1)") == WORDS.format("Write")


@pytest.mark.parametrize("language", LANGUAGES)
def test_explain(role, language):
    docs = role(language)
    docs.trust()
    found = docs.explain("post_tool_execution", tool="read", args={}, result="x")
    (hook,) = [hook for hook in found["hooks"] if hook["name"] == "no-console-log"]
    assert (hook["tier"], hook["priority"]) == ("after", 10)
    assert (
        "filter.tools"
        in docs.explain("post_tool_execution", "--live", tool="read", args={})["hooks"][0]["why"]
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_replay_of_a_recorded_session(role, language):
    docs = role(language)
    docs.trust()
    docs.recorded(TODO__one="console.log(1)")
    dry = docs.run("replay", "session.jsonl")
    if language == "JavaScript":  # Python modules run in dry events, too: they are asked to act on nothing
        assert [item.partition(":")[0] for item in dry["not_run"]] == ["no-console-log"]
        assert dry["injected"] == 0
    live = docs.run("replay", "session.jsonl", "--live")
    assert (live["tool_calls"], live["failures"], live["not_run"], live["injected"]) == (4, 0, [], 1)
    shown = docs.call("replay", "session.jsonl", "--live")
    assert shown.count(f"+ system prompt: {WORDS.format('Write')}") == 1


def test_both_at_once_have_modules_of_their_own(role):
    docs = role()
    text = (DATA / "role.yaml").read_text(encoding="utf-8")
    entry = text[text.index("    - name:") :]
    twin = entry.replace("no-console-log.js", "no_console_log.py").replace(
        "name: no-console-log", "name: twin"
    )
    docs.write("role.yaml", text + twin)
    docs.trust()
    out = docs.fire("post_tool_execution", tool="write", args={"content": "console.log(1)"}, result="ok")
    assert out["pending"] == "\n".join([WORDS.format("write")] * 2)


def test_the_lifecycle_and_priority_examples(role):
    docs = role()
    docs.write(
        "hooks/early-checker.js",
        "export default { onToolBefore: (ctx, { args }) => { args.seen = (args.seen ?? '') + ctx.hookName; } };",
    )
    shutil.copy(docs.folder / "hooks/early-checker.js", docs.folder / "hooks/late-checker.js")
    docs.write(
        "role.yaml",
        """\
name: Order
hooks:
  custom:
    - name: late-checker
      events: [tool.execute.before]
      module: hooks/late-checker.js
      priority: 50
      phase: before
    - name: early-checker
      events: [tool.execute.before]
      module: hooks/early-checker.js
      priority: 10          # 高优先级（先执行）
      phase: before
    - name: lifecycle
      events: [tool.execute.before]
      module: hooks/lifecycle-example.js
""",
    )
    docs.trust()
    out = docs.bash()
    assert out["event"]["args"]["seen"] == "early-checkerlate-checker"
    assert [rewrite["by"] for rewrite in out["rewrites"]] == ["early-checker", "late-checker"]
    # The document's lifecycle example has no handler but onLoad and onDispose; it is told and harms nobody.
    assert "Hook lifecycle loaded" in docs.err
    assert "Hook lifecycle disposed" in docs.err


def test_a_failing_module_costs_only_itself(role):
    docs = role()
    text = (DATA / "role.yaml").read_text(encoding="utf-8")
    entry = text[text.index("    - name:") :]
    bad = entry.replace("name: no-console-log", "name: bad").replace("no-console-log.js", "bad.js")
    gone = entry.replace("name: no-console-log", "name: gone").replace("no-console-log.js", "gone.js")
    docs.write("role.yaml", text + bad + gone)
    docs.write("hooks/bad.js", "export default { onToolAfter() { throw new Error('no'); } };")
    docs.run("trust", "--yes", code=1)  # a file that would run cannot be read
    out = docs.fire("post_tool_execution", tool="write", args={"content": "console.log(1)"}, result="ok")
    assert out["pending"] == WORDS.format("write")
    assert [failure["hook"] for failure in out["failures"]] == ["bad"]
    assert docs.err.count("gone.js") == 1
    (problem,) = docs.run("check", code=1)["problems"]
    assert "gone.js does not exist" in problem["cause"]
