"""What is read of functions without ``inspect`` is what ``inspect`` says."""

import functools
import inspect
from unittest import mock

import pytest

from hookturn import hookimpl
from hookturn.spec.functions import is_coroutine_function, is_routine, positional, static


class Owner:
    value = 1

    def method(self, event): ...

    def nothing(): ...

    @classmethod
    def of_class(cls, event, ctx): ...

    @staticmethod
    def of_nobody(event): ...

    async def waits(self, ctx): ...

    @property
    def held(self):
        raise AssertionError("called")

    def __call__(self, event): ...


class Slots:
    __slots__ = ("event",)


async def coroutine(event, ctx): ...


async def generator(event):
    yield event


def plain(event, ctx): ...


def default(event, ctx=None): ...


def stars(*event, **ctx): ...


def keyword(event, *, ctx): ...


def by_position(event, /, ctx): ...


def wrapped(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


def signed(event): ...


signed.__signature__ = inspect.signature(plain)

VALUES = {
    "function": plain,
    "coroutine": coroutine,
    "generator": generator,
    "default": default,
    "stars": stars,
    "keyword": keyword,
    "by position": by_position,
    "lambda": lambda event: event,
    "marked": hookimpl(lambda event: event),
    "wrapped": wrapped(plain),
    "wrapped coroutine": wrapped(coroutine),
    "signature": signed,
    "method": Owner().method,
    "method without self": Owner().nothing,
    "classmethod": Owner().of_class,
    "staticmethod": Owner().of_nobody,
    "coroutine method": Owner().waits,
    "static object": staticmethod(plain),
    "class object": classmethod(plain),
    "builtin": len,
    "builtin method": [].append,
    "slot": object.__str__,
    "descriptor": str.join,
    "partial": functools.partial(plain, 1),
    "instance": Owner(),
    "class": Owner,
    "module": inspect,
    "property": property(plain),
    "mock": mock.Mock(spec=plain),
    "number": 1,
    "none": None,
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_is_routine(value):
    assert is_routine(value) is inspect.isroutine(value)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_positional(value):
    found = positional(value)
    if found is not None:
        parameters = inspect.signature(value).parameters
        assert list(found) == list(parameters)
        assert all(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters.values())
        assert all(one.default is one.empty for one in parameters.values())


def test_plain_functions_need_no_inspect():
    names = (
        "function",
        "coroutine",
        "generator",
        "lambda",
        "marked",
        "method",
        "classmethod",
        "staticmethod",
    )
    assert [name for name in names if positional(VALUES[name]) is None] == []


@pytest.mark.parametrize(
    "name", [name for name in VALUES if name != "mock"]
)  # inspect itself stumbles over it
def test_is_coroutine_function(name):
    value = VALUES[name]
    try:
        inner = inspect.unwrap(value)
    except ValueError:
        inner = value
    expected = inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(inner)
    assert is_coroutine_function(value) is expected


@pytest.mark.parametrize(
    "name", ["value", "method", "of_class", "of_nobody", "held", "own", "missing", "__doc__"]
)
def test_static(name):
    owner = Owner()
    owner.own = 2
    vars(owner)["held"] = 3  # a property goes before it
    assert static(owner, name) is inspect.getattr_static(owner, name, None)


def test_static_of_modules_and_of_objects_without_a_dict():
    assert static(functools, "wraps") is functools.wraps
    assert static(Slots(), "event") is Slots.event
    assert static(Slots(), "other") is None
