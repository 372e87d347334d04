"""Hooks in a Python file: loaded apart, named when they fail."""

from __future__ import annotations

import sys
import textwrap

import pytest

from hookturn import Engine, RegistrationError, events
from hookturn.runners import module
from hookturn.runners.entry import HookEntry


@pytest.fixture
def entry(tmp_path):
    def make(source, name="h", timings=(), options=None, config=None, file="h.py", **more):
        if source is not None:
            (tmp_path / file).write_text(textwrap.dedent(source), encoding="utf-8")
        return HookEntry(
            name=name,
            kind="module",
            run=file,
            timings=list(timings),
            options=options or {},
            config=config or {},
            file="hookturn.yaml",
            line=3,
            base_dir=str(tmp_path),
            **more,
        )

    return make


def engine_of(*entries):
    engine = Engine()
    for item in entries:
        plugin = module.make(item, dict(item.config))
        engine.register(
            plugin,
            item.name,
            source=item.source,
            layer="user",
            config=dict(item.config),
            options=item.options,
        )
    return engine


def turn(engine):
    return list(engine.fire(events.TurnStart()).injected)


def tool(engine, name="bash", **args):
    return engine.fire(events.PreToolExecution(tool=name, args=args))


def test_functions_named_after_timings(entry):
    engine = engine_of(
        entry(
            """
            from hookturn import Deny, Inject

            def on_turn_start(event, ctx):
                return Inject(f"{ctx.hook_name} {ctx.config['word']}")

            async def pre_tool_execution(event):
                return Deny(event.command)

            def helper(x):
                return x
            """,
            config={"word": "w"},
        )
    )
    assert turn(engine) == ["h w"]
    out = tool(engine, command="ls")
    assert (out.reason, out.hooks[0].source) == ("ls", "hookturn.yaml:3")


def test_only_the_timings_of_the_entry_are_used(entry):
    source = "from hookturn import Inject, Deny\ndef on_turn_start(event): return Inject('x')\ndef pre_tool_execution(): return Deny('d')\n"
    engine = engine_of(entry(source, timings=["on_turn_start"]))
    assert turn(engine) == ["x"]
    assert tool(engine).decision is None


def test_marks_hold_unless_the_entry_says_otherwise(entry):
    source = """
    from hookturn import Deny, hookimpl

    @hookimpl(guard=True, priority=7, tools=["bash"])
    def pre_tool_execution(event):
        return Deny("d")

    @hookimpl(specname="on_error", priority=9)
    def watch(event): ...
    """
    engine = engine_of(entry(source))
    out = tool(engine)
    assert (out.hooks[0].tier, out.hooks[0].priority) == ("guard", 7)
    assert tool(engine, "read").decision is None
    engine = engine_of(
        entry(source, options={"priority": 1, "guard": False, "tools": ["read"], "phase": "before"})
    )
    out = tool(engine, "read")
    assert (out.hooks[0].tier, out.hooks[0].priority) == ("before", 1)


@pytest.mark.parametrize(
    "source",
    [
        "class Hooks:\n    def on_turn_start(self, event, ctx): return Inject(ctx.config['word'])\nplugin = Hooks()\n",
        "class plugin:\n    def on_turn_start(self, event, ctx): return Inject(ctx.config['word'])\n",
        "class plugin:\n    def __init__(self, config): self.word = config['word']\n    def on_turn_start(self): return Inject(self.word)\n",
        "class Hooks:\n    @hookimpl.on_turn_start\n    def start(self, event): return Inject('w')\nhook = Hooks()\n",
        "def hook(event, ctx): return Inject(ctx.config['word'])\n",
        "@hookimpl(priority=3)\ndef hook(event, ctx): return Inject(ctx.config['word'])\n",
    ],
)
def test_objects_classes_and_one_function_for_all(entry, source):
    engine = engine_of(
        entry(
            "from hookturn import Inject, hookimpl\n" + source,
            timings=["on_turn_start"],
            config={"word": "w"},
        )
    )
    assert turn(engine) == ["w"]


def test_one_function_serves_several_timings(entry):
    engine = engine_of(
        entry(
            "from hookturn import Warn\ndef hook(event): return Warn(event.timing)\n",
            timings=["on_turn_start", "on_error"],
        )
    )
    assert engine.fire(events.TurnStart()).warnings == ("on_turn_start",)
    assert engine.fire(events.Error(error_type="x", message="y")).warnings == ("on_error",)


def test_each_entry_has_a_module_of_its_own(entry):
    source = """
    from hookturn import Inject
    count = 0
    def on_turn_start(event, ctx):
        global count
        count += 1
        return Inject(f"{ctx.hook_name}{count}")
    """
    engine = engine_of(entry(source, name="a"), entry(None, name="b"))
    assert turn(engine) == ["a1", "b1"]
    assert turn(engine) == ["a2", "b2"]


def test_the_module_goes_with_its_plugin(entry):
    def loaded():
        return {name for name in sys.modules if name.startswith("hookturn_module_")} - before

    before = set(sys.modules)  # plugins of other tests may wait for the garbage collector
    plugin = module.make(entry("def on_error(event): ...\n"))
    assert len(loaded()) == 1
    del plugin
    assert loaded() == set()
    with pytest.raises(RegistrationError):
        module.make(entry("1 / 0"))
    assert loaded() == set()


def test_dataclasses_and_string_annotations_work_in_it(entry):
    engine = engine_of(
        entry(
            """
            from __future__ import annotations
            from dataclasses import dataclass
            from typing import ClassVar, get_type_hints
            from hookturn import Inject

            @dataclass
            class Box:
                kind: ClassVar[str] = "k"
                x: int = 1

            def on_turn_start(event):
                return Inject(f"{sorted(get_type_hints(Box))} {Box(2).x}")
            """
        )
    )
    assert turn(engine) == ["['kind', 'x'] 2"]


def test_our_own_future_imports_do_not_leak_into_it(entry):
    engine = engine_of(
        entry(
            "from hookturn import Inject\ndef f(x: int): ...\ndef on_turn_start(): return Inject(str(f.__annotations__['x']))\n"
        )
    )
    assert turn(engine) == ["<class 'int'>"]


def test_on_load_and_on_dispose(entry, tmp_path):
    engine = engine_of(
        entry(
            f"""
            from pathlib import Path
            def on_load(ctx): Path({str(tmp_path / "loaded")!r}).write_text(ctx.hook_name)
            def on_dispose(): Path({str(tmp_path / "disposed")!r}).touch()
            def on_error(event): ...
            """,
            timings=["on_error"],
        )
    )
    assert (tmp_path / "loaded").read_text() == "h"
    assert not (tmp_path / "disposed").exists()
    engine.close()
    assert (tmp_path / "disposed").exists()


def test_a_neighbour_cannot_be_imported(entry, tmp_path):
    (tmp_path / "neighbour_of_hook.py").write_text("")
    with pytest.raises(RegistrationError, match="No module named 'neighbour_of_hook'"):
        module.make(entry("import neighbour_of_hook\n"))


@pytest.mark.parametrize(
    ("source", "timings", "cause"),
    [
        (None, (), "h.py cannot be read: No such file or directory"),
        ("def (", (), "h.py:1:5 is not Python: invalid syntax"),
        ("x = '\0'", (), "null byte"),
        ("\n\n1 / 0\n", (), "h.py:3 failed at import: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit('bye')\n", (), "h.py:2 failed at import: SystemExit: bye"),
        (
            "class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E\n",
            (),
            "failed at import: E: <E: str failed",
        ),
        ("def f():\n    f()\nf()\n", (), "failed at import: RecursionError"),
        ("", (), "has no hook"),
        ("def on_load(): ...\ndef on_dispose(): ...\n", (), "has no hook beside on_load and on_dispose"),
        (
            "def pre_tool(event): ...\n",
            (),
            "has no hook; 'pre_tool' is no timing (did you mean 'pre_tool_execution'?)",
        ),
        (
            "def on_eror(event): ...\n",
            ("on_error",),
            "has no function 'on_error' (did you mean 'on_eror'?); it has no hook",
        ),
        ("def on_error(event): ...\n", ("post_turn",), "has no function 'post_turn'; it has on_error"),
        (
            "from hookturn import hookimpl\n@hookimpl\ndef pre_tool(event): ...\n",
            (),
            "there is no hook timing 'pre_tool' (did you",
        ),
        (
            "class plugin:\n    def __init__(self): raise SystemExit(2)\n",
            (),
            "plugin() failed: SystemExit: 2",
        ),
    ],
)
def test_what_fails_is_named(entry, source, timings, cause):
    with pytest.raises(RegistrationError) as caught:
        module.make(entry(source, timings=timings))
    assert cause in caught.value.cause
    assert caught.value.plugin == "h"
    assert caught.value.remedy.endswith(".")


@pytest.mark.parametrize("timings", [(), ("pre_tool_execution",)])
def test_a_class_with_hooks_needs_an_object(entry, timings):
    with pytest.raises(RegistrationError) as caught:
        module.make(entry("class NoPush:\n    def pre_tool_execution(self, event): ...\n", timings=timings))
    assert caught.value.remedy == "The class NoPush has hooks; add `plugin = NoPush()` at the end."


def test_a_refused_function_has_a_place(entry, tmp_path):
    plugin = module.make(entry("\n\ndef on_turn_start(event, other): ...\n"))
    assert module.place_of(plugin, "on_turn_start") == f"{tmp_path / 'h.py'}:3, on_turn_start"
    assert module.place_of(plugin, "post_turn") == ""


def test_an_interrupt_passes(entry):
    with pytest.raises(KeyboardInterrupt):
        module.make(entry("raise KeyboardInterrupt\n"))


def test_a_digest_binds_the_bytes(entry, tmp_path):
    from hashlib import sha256

    source = b"def on_error(event): ...\n"
    (tmp_path / "h.py").write_bytes(source)
    module.make(entry(None, digest=sha256(source).hexdigest()))
    (tmp_path / "h.py").write_bytes(source + b"#")
    with pytest.raises(RegistrationError, match="has changed since it was trusted"):
        module.make(entry(None, digest=sha256(source).hexdigest()))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (b"@hookimpl(guard=True)\ndef pre_tool_execution(event): ...", ["pre_tool_execution"]),
        (b"@hookimpl(guard=True, specname='on_error')\nasync def x(event): ...", ["on_error"]),
        (b"@ht.hookimpl.on_error(guard=1)\ndef x(event): ...", ["on_error"]),
        (b"class P:\n    @hookimpl(guard=flag)\n    def on_error(self): ...", ["on_error"]),
        (b"@hookimpl(guard=False)\ndef on_error(event): ...", []),
        (b"@hookimpl\ndef guard(event): ...", []),
        (b"guard = (", []),
        (b"guard \0", []),
        (b"", []),
    ],
)
def test_guards_are_read_off_the_text(source, found):
    assert module.guards(source) == found
