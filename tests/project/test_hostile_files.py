"""Hostile hook files of every dialect, hookturn's own among them: each costs only itself, and says so.

A hook that is good writes a line into ``ran`` in the project's folder, so that the file shows who was called.
"""

from __future__ import annotations

import json
import os

import pytest

from hookturn import events

BIG = 10_000_000


class Kind:
    """One kind of hook file.

    Parameters:
        form: json, yaml or toml.
        path: where a project has it.
        beside: where another good file of the kind lies; ``~`` is the user's home, ``@`` hookturn's folder there.
        file: (good name, entries as text) -> a whole file.
        good: name -> an entry that writes its name.
        bad: entries that are wrong, in the file's own form.
    """

    def __init__(self, form, path, beside, file, good, bad):
        self.form, self.path, self.beside, self.file, self.good, self.bad = (
            form,
            path,
            beside,
            file,
            good,
            bad,
        )


def noting(name):
    return f'echo {name} >> \\"$HOOKTURN_TEST_RAN\\"'


def yaml_entry(name):
    return f'- {{name: {name}, timings: [pre_tool_execution], run: {{command: "{noting(name)}"}}}}'


def role_entry(name):
    return f"    - {{name: {name}, events: [tool.execute.before], module: {name}.py}}"


def json_entry(name):
    return f'"{name}": {{"event": "PreToolUse", "command": "{noting(name)}"}}'


def claude_entry(name):
    return f'{{"hooks": [{{"type": "command", "command": "{noting(name)}"}}]}}'


def toml_entry(name):
    return f'[[hooks]]\nname = "{name}"\ntrigger = "pre_tool"\nscript = "{name}.sh"'


LONG = "x" * 300_000

KINDS = {
    "hookturn": Kind(
        "yaml", "hookturn.yaml", "@/hookturn.yaml", lambda entries: "hooks:\n" + "\n".join(entries) + "\n", yaml_entry,
        ["- 5", "- null", "- [[]]", "- {}", "- {name: a}", "- {name: [a], timings: [pre_tool_execution]}",
         "- {name: b, timings: 5, run: {command: 'true'}}", "- {name: c, timings: [x], run: {command: 'true'}}",
         "- {name: d, timings: [pre_tool_execution], run: {command: ''}}", "- {name: e, timings: [pre_tool_execution], run: {comand: x}}",
         "- {name: f, timings: [pre_tool_execution], run: {command: 'true'}, priority: high}",
         "- {name: g, timings: [pre_tool_execution], run: {command: 'true'}, timeout: -1}",
         "- {name: h, timings: [pre_tool_execution], run: {module: nowhere.py}}",
         "- {name: \"\\e[2J\\0\", timings: [pre_tool_execution], run: {command: 'true'}}",
         "- {? [a] : b}", f"- {LONG}"],
    ),
    "rolebox": Kind(
        "yaml", "rolebox/bad/role.yaml", "rolebox/fine/role.yaml",
        lambda entries: "name: bad\nprompt: p\nhooks:\n  builtin: {recovery: false}\n  custom:\n" + "\n".join(entries) + "\n", role_entry,
        ["    - 5", "    - null", "    - []", "    - {}", "    - {name: a, events: [tool.execute.before]}",
         "    - {name: b, events: 5, module: b.py}", "    - {name: c, events: [tool.before], module: c.py}",
         "    - {name: d, events: [tool.execute.before], module: nowhere.py}", "    - {name: e, events: [tool.execute.before], module: broken.py}",
         "    - {name: f, events: [tool.execute.before], module: nowhere.js}", "    - {name: g, events: [tool.execute.before], module: ''}",
         "    - {name: h, events: [tool.execute.before], module: \"a\\0b.py\"}", "    - {name: i, events: [tool.execute.before], module: ../../../../etc/passwd}",
         "    - {name: j, events: [tool.execute.before], module: x.py, phase: during}", "    - {name: \"\\e[2J\", events: [{}], module: [x]}",
         "    - {name: k, events: [tool.execute.before], module: exits.py}", "    - {name: l, events: [tool.execute.before], module: /dev/zero}",
         f"    - {LONG}"],
    ),
    "hooks.json": Kind(
        "json", ".hooks.json", "~/.atomcode/hooks.json", lambda entries: '{"hooks": {' + ",\n".join(entries) + "}}", json_entry,
        ['"b": 5', '"b": null', '"b": []', '"b": {}', '"b": "x"', '"b": {"event": "PreToolUse"}', '"b": {"event": 5, "command": "true"}',
         '"b": {"event": "Nope", "command": "true"}', '"b": {"event": "PreToolUse", "command": ["x"]}',
         '"b": {"event": "PreToolUse", "command": "a\\u0000b"}', '"b": {"event": "PreToolUse", "command": "true", "timeout_ms": -1}',
         '"b": {"event": "PreToolUse", "command": "true", "timeout_ms": 1e400}', '"b": {"event": "PreToolUse", "command": "true", "matcher": {}}',
         '"": {"event": "PreToolUse", "command": "true"}', '"b\\u0000": {"event": "PreToolUse", "command": "true"}',
         '"\\ud800": {"event": "\\ud800", "command": "\\ud800"}', '"__proto__": {"event": {"event": {}}}', f'"b": "{LONG}"'],
    ),
    "hooks.toml": Kind(
        "toml", ".atomcode/hooks/hooks.toml", "~/.atomcode/hooks/hooks.toml", lambda entries: "\n".join(entries) + "\n", toml_entry,
        ["[[hooks]]", '[[hooks]]\nname = "a"', '[[hooks]]\nname = 5\ntrigger = "pre_tool"\nscript = "x"',
         '[[hooks]]\nname = "b"\ntrigger = "on_turn_complete"\nscript = "x.sh"', '[[hooks]]\nname = "c"\ntrigger = "pre_tool"\nscript = "nowhere.sh"',
         '[[hooks]]\nname = "d"\ntrigger = "pre_tool"\nscript = "../../../../etc/passwd"\nscript_type = "perl"',
         '[[hooks]]\nname = "e"\ntrigger = "pre_tool"\nscript = "x.sh"\ntimeout_secs = -5',
         '[[hooks]]\nname = "f"\ntrigger = "pre_tool"\nscript = "x.sh"\nenabled = "yes"', '[[hooks]]\nname = "g"\ntrigger = ["pre_tool"]\nscript = 1979-05-27',
         '[[webhooks]]\nname = "h"\ntrigger = "pre_tool"\nurl = "file:///etc/passwd"', '[[webhooks]]\nname = "i"\ntrigger = "pre_tool"\nurl = "http://169.254.169.254/"',
         '[[webhooks]]\nname = "j"\nurl = 5\ntrigger = "pre_tool"', '[[async_webhooks]]\nname = "k"\nurl = ""\nbatch_size = 0',
         '[[hooks]]\nname = "l"\ntrigger = "pre_tool"\nscript = "a\\u0000b"', f'[[hooks]]\nname = "{LONG}"'],
    ),
    "claude": Kind(
        "json", ".claude/settings.json", "~/.claude/settings.json", lambda entries: '{"hooks": {"PreToolUse": [' + ",\n".join(entries) + "]}}", claude_entry,
        ["5", "null", "[]", "{}", '"x"', '{"hooks": 5}', '{"hooks": [5, null, [], {}]}', '{"type": "command", "command": "true"}',
         '{"matcher": {}, "hooks": [{"type": "command", "command": "true"}]}', '{"matcher": "(", "hooks": [{"type": "command", "command": "true"}]}',
         '{"matcher": "(?i)bash", "hooks": [{"type": "command", "command": "true"}]}', '{"hooks": [{"type": "command"}]}',
         '{"hooks": [{"type": "nope", "command": "true"}]}', '{"hooks": [{"type": "command", "command": "a\\u0000b"}]}',
         '{"hooks": [{"type": "command", "command": "true", "if": "("}]}', '{"hooks": [{"type": "http", "url": "file:///etc/passwd"}]}',
         '{"hooks": [{"type": "command", "command": "true", "timeout": -1e400}]}', f'"{LONG}"'],
    ),
}  # fmt: skip

BROKEN = {
    "nothing": b"",
    "blanks": b" \n\t\n",
    "a list": b"[1, 2]\n",
    "a number": b"1e999",
    "a text": b'"hooks"',
    "cut off": b'{"hooks": {"a": ["',
    "a NUL": b'{"hooks": "\0"}',
    "NULs": b"\0" * 4096,
    "no UTF-8": b'{"hooks": "\xff\xfe"}',
    "a surrogate": b'name: "\xed\xa0\x80"\n',
    "UTF-16": '{"hooks": {}}'.encode("utf-16"),
    "UTF-32": '{"hooks": {}}'.encode("utf-32"),
    "two marks": b"\xef\xbb\xbf\xef\xbb\xbf{}",
    "a program": b"\x7fELF" + bytes(range(256)) * 20,
    "ten megabytes": b'{"hooks": {"a": "' + b"x" * BIG + b'"}}',
    "ten megabytes of blanks": b" " * BIG,
    "nested": b"[" * 100_000,
    "nested objects": b'{"hooks":' * 20_000,
    "nested hooks": b"hooks: " + b"{a: " * 5_000,
    "hooks is a number": b'{"hooks": 5}',
    "hooks is nothing": b'{"hooks": null}',
    "hooks is a text": b"hooks: x\n",
    "hooks in TOML is a number": b"hooks = 5\nwebhooks = {}\nasync_webhooks = [1]\n",
    "a YAML cycle": b"hooks: &a\n  custom: [*a]\n  b: *a\n",
    "a YAML bomb": b"hooks:\n  custom:\n  - &a [x, x, x, x, x, x, x, x, x]\n"
    + b"".join(
        b"  - &%c [%s]\n" % (c, b", ".join([b"*%c" % (c - 1)] * 9)) for c in range(ord("b"), ord("l"))
    ),
    "a YAML merge cycle": b"hooks: &a\n  <<: *a\n",
    "a YAML tag": b"hooks: !!python/object/apply:os.system ['echo tag >> ran']\n",
    "two YAML documents": b"hooks: {}\n---\nhooks: {}\n",
    "a tab": b"hooks:\n\t- a\n",
    "keys that are lists": b"hooks:\n  ? [a, b]\n  : c\n",
    "twice the same key": b'{"hooks": {"x": {}}, "hooks": {}}',
    "a table twice": b"[hooks]\n[hooks]\n[[hooks]]\n",
    "huge numbers": b'{"hooks": ' + b"9" * 50_000 + b"}",
}

NO_FILES = ["fifo", "folder", "device", "loop", "nowhere", "unreadable", "socket"]


@pytest.fixture
def hostile(project, tmp_path, monkeypatch):
    """The project with one good hook of every kind beside the file that a test spoils."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    ran = project.folder / "ran"
    monkeypatch.setenv("HOOKTURN_TEST_RAN", str(ran))
    (project.folder / ".git").mkdir()

    class Hostile:
        def put(self, path, content):
            base = {"~": home, "@": tmp_path / "config"}.get(path[0])
            target = project.folder / path if base is None else base / path[2:]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(
                content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
            )
            return target

        def beside(self, kind):
            """Write the other good file of a kind, with the scripts that good entries of it name."""
            entry = KINDS[kind]
            self.put(entry.beside, entry.file([entry.good("beside")]).replace("name: bad", "name: fine"))
            for path, names in ((entry.beside, ["beside"]), (entry.path, ["first", "last"])):
                for name in names:
                    folder = path.rpartition("/")[0]
                    if kind == "rolebox":
                        code = f"    with open({str(ran)!r}, 'a') as file:\n        file.write('{name}\\n')\n"
                        self.put(f"{folder}/{name}.py", f"def on_tool_before(ctx, input):\n{code}")
                    elif kind == "hooks.toml":
                        self.put(f"{folder}/{name}.sh", f'echo {name} >> "$HOOKTURN_TEST_RAN"\n')

        def assemble(self):
            project.trust()
            return project.assemble()

        def called(self, assembled):
            """Fire one tool call for any role's agent and return who was called."""
            for agent in ("fine", "bad"):
                event = events.PreToolExecution(
                    tool="bash", args={"command": "ls"}, agent=agent, cwd=str(project.folder)
                )
                assembled.engine.fire(event)
            assembled.engine.close()
            return set(ran.read_text().split()) if ran.exists() else set()

    monkeypatch.setenv("HOOKTURN_CONFIG_DIR", str(tmp_path / "config"))
    return Hostile()


def told(assembled):
    """Return the problems as text; each can be printed and is not longer than a page."""
    texts = [str(problem) for problem in assembled.problems]
    for text in texts:
        assert text.isprintable()
        assert len(text) < 5_000
    return texts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_costs_only_itself(hostile, kind, what):
    hostile.beside(kind)
    hostile.put(KINDS[kind].path, BROKEN[what])
    assembled = hostile.assemble()
    told(assembled)
    assert hostile.called(assembled) == {"beside"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", NO_FILES)
def test_what_is_no_file_costs_only_itself(hostile, project, kind, what):
    hostile.beside(kind)
    path = project.folder / KINDS[kind].path
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "socket":
        import socket

        with socket.socket(socket.AF_UNIX) as listener:
            folder = os.getcwd()
            os.chdir(path.parent)  # a socket's address is short
            listener.bind(path.name)
            os.chdir(folder)
    elif what == "unreadable":
        path.write_bytes(b"{}")
        path.chmod(0)
        if os.geteuid() == 0:
            pytest.skip("root reads everything")
    else:
        path.symlink_to({"device": "/dev/zero", "loop": path.name, "nowhere": "nowhere"}[what])
    assembled = hostile.assemble()
    told(assembled)
    assert hostile.called(assembled) == {"beside"}


@pytest.mark.parametrize("kind", KINDS)
def test_bad_entries_between_good_ones_cost_only_themselves(hostile, kind):
    entry = KINDS[kind]
    assert len(entry.bad) >= 10
    for bad in entry.bad:
        hostile.beside(kind)
        for name in ("broken.py", "exits.py"):
            hostile.put(
                f"{entry.path.rpartition('/')[0]}/{name}",
                "def (" if name == "broken.py" else "raise SystemExit(0)",
            )
        hostile.put(entry.path, entry.file([entry.good("first"), bad, entry.good("last")]))
        assembled = hostile.assemble()
        assert told(assembled), bad[:200]
        assert hostile.called(assembled) == {"beside", "first", "last"}, bad[:200]
        os.remove(os.environ["HOOKTURN_TEST_RAN"])


@pytest.mark.parametrize("kind", KINDS)
def test_all_bad_entries_at_once(hostile, kind):
    entry = KINDS[kind]
    hostile.beside(kind)
    bad = [item for item in entry.bad if "? [a]" not in item and LONG not in item]
    hostile.put(entry.path, entry.file([entry.good("first"), *bad, entry.good("last")]))
    assembled = hostile.assemble()
    assert len(told(assembled)) >= 3
    assert hostile.called(assembled) == {"beside", "first", "last"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_bad_entries(hostile, kind):
    entry = KINDS[kind]
    hostile.beside(kind)
    bad = [
        entry.bad[0] if entry.form != "json" or kind == "claude" else f'"b{number}": 5'
        for number in range(1_000)
    ]
    hostile.put(entry.path, entry.file([entry.good("first"), *bad, entry.good("last")]))
    assembled = hostile.assemble()
    assert told(assembled)
    assert hostile.called(assembled) == {"beside", "first", "last"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["mark", "crlf", "both", "comments", "twice"])
def test_what_editors_make_of_a_good_file_is_fine(hostile, kind, form):
    entry = KINDS[kind]
    hostile.beside(kind)
    text = entry.file([entry.good("first"), entry.good("last")])
    if form in ("crlf", "both"):
        text = text.replace("\n", "\r\n")
    if form == "comments":
        text = f"// a\n/* b */\n{text}" if entry.form == "json" else f"# a\n{text}"
    if form == "twice" and entry.form == "json":  # the last of two equal keys counts, and it is told
        text = '{"hooks": {},\n' + text[1:]
    content = text.encode()
    hostile.put(entry.path, b"\xef\xbb\xbf" + content if form in ("mark", "both") else content)
    assembled = hostile.assemble()
    assert hostile.called(assembled) == {"beside", "first", "last"}
    assert [text for text in told(assembled) if "twice" not in text and "again" not in text] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_link_out_of_the_project_waits_for_trust_like_the_projects_own(hostile, project, tmp_path, kind):
    entry = KINDS[kind]
    hostile.beside(kind)
    outside = tmp_path / "outside"
    outside.write_text(entry.file([entry.good("first")]))
    path = project.folder / entry.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(outside)
    beside = (
        set() if kind == "rolebox" else {"beside"}
    )  # the user's own needs no trust, the project's other role does
    assert hostile.called(project.assemble()) == beside


@pytest.mark.parametrize("kind", KINDS)
def test_check_tells_of_every_file_that_it_cannot_use(hostile, kind, capsys, project):
    from hookturn.cli import main

    hostile.beside(kind)
    hostile.put(KINDS[kind].path, b"name: x\nprompt: \xff\n" if kind == "rolebox" else b"{\xff")
    assert main(["check", "--project", str(project.folder), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [item["file"] for item in report["problems"] if item["severity"] == "error"] == [KINDS[kind].path]
