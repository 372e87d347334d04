"""Settings become objects of a plugin's Config, checked against its annotations."""

from __future__ import annotations

import enum
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from hookturn.project.settings import build, config_of, declares
from hookturn.redact import Secret

if typing.TYPE_CHECKING:
    from nowhere import Absent


class Color(enum.Enum):
    RED = "red"


@dataclass
class Inner:
    deep: int
    name: str = "n"


class Plain:
    text: str = "t"
    count: int = 3
    share: float = 0.5
    on: bool = False
    names: list[str] = []
    by_name: dict[str, int] = {}
    level: Literal["low", "high", 3] = "low"
    maybe: str | None = None
    either: typing.Union[int, list[int]] = 0  # noqa: UP007
    pair: tuple[str, int] = ("a", 1)
    many: tuple[int, ...] = ()
    unique: set[str] = set()
    loose: set = set()
    seq: Sequence[int] = ()
    mapping: Mapping[str, str] = {}
    token: Secret | None = None
    path: Path = Path(".")
    color: Color = Color.RED
    inner: Inner | None = None
    inners: list[Inner] = []
    anything: Any = None
    absent: Absent = None
    KIND: ClassVar[str] = "k"
    _private: int = 0


def good(config, **settings):
    wrong = []
    made = build(config, settings, wrong)
    assert [item.cause for item in wrong if item.severity == "error"] == []
    return made


def bad(config, **settings):
    wrong = []
    assert build(config, settings, wrong) is None
    return [(item.path, item.cause) for item in wrong]


def test_defaults_and_given_values():
    made = good(
        Plain, count=4, share=2, names=["x"], either=[1], inner={"deep": 1}, inners=[{"deep": 2, "name": "m"}]
    )
    assert isinstance(made, Plain)
    assert (made.text, made.count, made.share, made.names) == ("t", 4, 2.0, ["x"])
    assert isinstance(made.share, float)
    assert (made.either, made.inner, made.inners) == ([1], Inner(1), [Inner(2, "m")])


def test_values_are_converted_where_yaml_has_no_such_type():
    made = good(
        Plain, path="a/b", color="red", unique=["a", "b"], pair=["x", 2], many=[1, 2], level=3, absent=7
    )
    assert (made.path, made.color, made.unique) == (Path("a/b"), Color.RED, {"a", "b"})
    assert (made.pair, made.many, made.level, made.absent) == (("x", 2), (1, 2), 3, 7)


def test_objects_do_not_share_their_defaults():
    one, two = good(Plain), good(Plain)
    one.names.append("x")
    assert (two.names, Plain.names) == ([], [])


@pytest.mark.parametrize(
    ("settings", "path", "cause"),
    [
        ({"cuont": 1}, ("cuont",), "unknown setting 'cuont' (did you mean 'count'?)"),
        ({"KIND": "x"}, ("KIND",), "unknown setting 'KIND'"),
        ({"_private": 1}, ("_private",), "unknown setting '_private'"),
        ({"text": 1}, ("text",), "expected a text, got 1"),
        ({"text": None}, ("text",), "expected a text, got nothing"),
        ({"count": True}, ("count",), "expected a whole number, got True"),
        ({"count": 1.5}, ("count",), "expected a whole number, got 1.5"),
        ({"count": "1"}, ("count",), "expected a whole number, got '1'"),
        ({"share": "half"}, ("share",), "expected a number, got 'half'"),
        ({"on": "yes"}, ("on",), "expected true or false, got 'yes'"),
        ({"on": 1}, ("on",), "expected true or false, got 1"),
        ({"names": "x"}, ("names",), "expected a list, each a text, got 'x'"),
        ({"names": ["x", 2]}, ("names", 1), "expected a text, got 2"),
        ({"by_name": {"a": "x"}}, ("by_name", "a"), "expected a whole number, got 'x'"),
        ({"by_name": []}, ("by_name",), "expected a mapping, got a list"),
        ({"level": "hihg"}, ("level",), "expected 'low' or 'high' or 3, got 'hihg' (did you mean 'high'?)"),
        ({"level": True}, ("level",), "expected 'low' or 'high' or 3, got True"),
        ({"maybe": 3}, ("maybe",), "expected a text, got 3"),
        ({"either": ["x"]}, ("either", 0), "expected a whole number, got 'x'"),
        ({"either": "x"}, ("either",), "expected a whole number or a list, each a whole number, got 'x'"),
        ({"pair": ["x"]}, ("pair",), "expected a list of 2, got a list"),
        ({"unique": [["x"]]}, ("unique", 0), "expected a text, got a list"),
        ({"loose": [["x"]]}, ("loose",), "expected a list, got a list"),
        ({"token": 3}, ("token",), "expected Secret, got 3"),
        ({"color": "blue"}, ("color",), "expected Color, got 'blue'"),
        ({"inner": {"deep": "x"}}, ("inner",), "expected Inner, got a mapping"),
        ({"inners": [{"deep": "x"}]}, ("inners", 0, "deep"), "expected a whole number, got 'x'"),
        ({"inners": [{}]}, ("inners", 0), "the setting 'deep' is missing"),
    ],
)
def test_what_can_be_wrong(settings, path, cause):
    ((where, why), *more) = bad(Plain, **settings)
    assert (where, more) == (path, [])
    assert why.startswith(cause)


def test_a_secret_fits_only_where_one_is_declared():
    made = good(Plain, token=Secret("abc"))
    assert made.token.reveal() == "abc"
    assert bad(Plain, text=Secret("abc")) == [(("text",), "expected a text, got a secret")]
    wrong = []
    made = build(Plain, {"token": "written out"}, wrong)
    assert made.token.reveal() == "written out"
    assert [(item.severity, item.cause) for item in wrong] == [("warning", "a secret is written out here")]


@dataclass
class Data:
    must: str
    limits: list[int] = field(default_factory=lambda: [1])
    made: int = field(default=0, init=False)

    def __post_init__(self):
        if self.must == "evil":
            raise ValueError("must is evil")


def test_a_dataclass():
    assert good(Data, must="x").limits == [1]
    assert bad(Data) == [((), "the setting 'must' is missing")]
    assert bad(Data, must="evil") == [((), "the plugin refuses its settings: must is evil")]
    assert bad(Data, must="x", made=3)[0][0] == ("made",)


class OwnInit:
    def __init__(self, url: str, *, retries: int = 3) -> None:
        if retries > 9:
            raise ValueError(f"retries is {retries}, more than 9")
        self.url, self.retries = url, retries


class Validates:
    low: int = 0
    high: int = 10

    def validate(self):
        if self.low > self.high:
            raise ValueError("low is above high")


class Explodes:
    def __init__(self, a: int = 0) -> None:
        raise SystemExit(3)


class TakesAll:
    def __init__(self, **values):
        self.values = values


class Needs:
    must: int


def test_classes_with_their_own_ways():
    assert good(OwnInit, url="u").retries == 3
    assert bad(OwnInit, url=3) == [(("url",), "expected a text, got 3")]
    assert bad(OwnInit, url="u", retries=10) == [
        ((), "the plugin refuses its settings: retries is 10, more than 9")
    ]
    assert good(Validates, low=1).low == 1
    assert bad(Validates, low=11) == [((), "the plugin refuses its settings: low is above high")]
    assert bad(Explodes, a=1) == [((), "the plugin refuses its settings: SystemExit: 3")]
    assert good(TakesAll, a=1, b=[2]).values == {"a": 1, "b": [2]}
    assert bad(Needs) == [((), "the setting 'must' is missing")]
    assert good(Needs, must=1).must == 1


def test_where_a_config_is_found():
    class Factory:
        Config = Data

    def factory(config):
        """A factory in a module without a Config."""

    assert config_of(Factory) is Data
    assert config_of(Factory()) is Data
    assert config_of(factory) is None
    assert declares(Data, "must")
    assert not declares(Data, "made")
    assert not declares(None, "must")
