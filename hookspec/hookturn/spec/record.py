"""The base of events and answers: frozen records with named fields, without dataclasses.

dataclasses imports inspect (about 17 ms), which every agent step would pay.
Fields are annotations, defaults are class attributes, as in a dataclass, so
type checkers read them by ``dataclass_transform``.
"""

from __future__ import annotations

from .errors import EventError, HookturnError, did_you_mean, wrong_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, NoReturn

    from typing_extensions import Self, dataclass_transform

    view = property
else:

    def dataclass_transform(**_):
        return lambda cls: cls

    class view:
        """A value computed from a record's fields at first use, then kept on the record."""

        def __init__(self, function):
            self.function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, record, owner=None):
            if record is None:
                return self
            value = record.__dict__[self.name] = self.function(record)
            return value


_LONGEST_INT = 13_000  # bits, about 3,900 decimal digits

MAX_DEPTH = 200
"""Containers nested deeper than this are refused: no real payload is, and recursion has an end."""


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError("an event's data is read-only: return Rewrite(...) to change it")


class FrozenDict(dict):  # type: ignore[type-arg]
    """A dict that refuses changes; copies of it (``copy``, ``deepcopy``, ``thaw``) are ordinary dicts."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[Any, Any]:
        return dict(self)

    copy = __copy__

    def __deepcopy__(self, memo: object) -> dict[Any, Any]:
        result: dict[Any, Any] = thaw(self)
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, (dict(self),))


class FrozenList(list):  # type: ignore[type-arg]
    """A list that refuses changes; copies of it are ordinary lists."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    copy = __copy__

    def __deepcopy__(self, memo: object) -> list[Any]:
        result: list[Any] = thaw(self)
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (list(self),))


_FROZEN = frozenset([str, int, float, bool, type(None), FrozenDict, FrozenList])
"""Kinds that are frozen as they are."""


def freeze(value: Any, depth: int = 0) -> Any:
    """Return ``value`` with every dict and list in it replaced by a read-only copy.

    Other objects are kept as they are: a host's result may be anything.

    Raises:
        EventError: when containers nest deeper than MAX_DEPTH.
    """
    kind = value.__class__
    if kind in _FROZEN:
        return value
    if kind is dict:
        if depth > MAX_DEPTH:
            raise EventError(f"data is nested deeper than {MAX_DEPTH} levels")
        depth += 1
        return FrozenDict(
            {key: item if item.__class__ in _FROZEN else freeze(item, depth) for key, item in value.items()}
        )
    if kind is list:
        if depth > MAX_DEPTH:
            raise EventError(f"data is nested deeper than {MAX_DEPTH} levels")
        depth += 1
        return FrozenList([item if item.__class__ in _FROZEN else freeze(item, depth) for item in value])
    if kind is tuple:
        if depth > MAX_DEPTH:
            raise EventError(f"data is nested deeper than {MAX_DEPTH} levels")
        return tuple([freeze(item, depth + 1) for item in value])
    if isinstance(value, (dict, list)):  # OrderedDict and the like
        return freeze(dict(value) if isinstance(value, dict) else list(value), depth)
    return value


def thaw(value: Any) -> Any:
    """Return a deep copy of ``value`` in which every dict and list is an ordinary, changeable one."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thaw(item) for item in value]
    if value.__class__ is tuple:
        return tuple(thaw(item) for item in value)
    return value


def jsonable(value: Any, depth: int = 0) -> Any:
    """Return ``value`` as JSON can hold it: other objects become their ``to_json()``, else their repr.

    Floats without a JSON form (NaN, infinity) and integers of more than 3,900
    digits become strings, keys become strings, and what nests too deep (or
    refers to itself) becomes an ellipsis.
    """
    if value is None or value is True or value is False:
        return value
    if depth > MAX_DEPTH:
        return "..."
    if isinstance(value, str):
        return value if value.__class__ is str else str.__str__(value)
    if isinstance(value, int):
        # Python writes no longer integers as decimal digits (sys.set_int_max_str_digits).
        return int(value) if value.bit_length() < _LONGEST_INT else hex(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else repr(float(value))
    if isinstance(value, dict):
        return {
            key if key.__class__ is str else safe_text(key): jsonable(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(item, depth + 1) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, BaseException):
        return {"type": type(value).__name__, "message": safe_text(value)}
    to_json = getattr(value, "to_json", None)
    if callable(to_json) and not isinstance(value, type):
        try:
            return jsonable(to_json(), depth + 1)
        except Exception as error:  # a foreign object's to_json may do anything
            return f"<{type(value).__name__}: to_json failed: {type(error).__name__}>"
    try:
        return repr(value)
    except Exception as error:  # a foreign object's repr may do anything
        return f"<{type(value).__name__}: repr failed: {type(error).__name__}>"


def safe_text(value: object) -> str:
    """Return ``str(value)``, or a placeholder when the object's own ``__str__`` fails."""
    try:
        return str(value)
    except Exception as error:  # a foreign object's __str__ may do anything
        return f"<{type(value).__name__}: str failed: {type(error).__name__}>"


_Check = tuple[type, tuple[type, ...]]

# What a field's annotation admits, by the annotation's first word: the kind that is right and frozen as it is, and
# all kinds. Others are not checked.
_CHECKS: dict[str, _Check] = {
    "str": (str, (str,)),
    "int": (int, (int,)),
    "float": (float, (int, float)),
    "bool": (bool, (bool,)),
    "dict": (FrozenDict, (dict,)),
    "list": (FrozenList, (list, tuple)),
}

_read: dict[str, tuple[bool, _Check | None]] = {}


def _reading(annotation: object) -> tuple[bool, _Check | None]:
    """Return whether an annotation makes a field, and what the field admits (None: anything)."""
    if "ClassVar" in str(annotation):
        return False, None
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return True, None if "|" in text else _CHECKS.get(text.split("[")[0].strip())


@dataclass_transform(frozen_default=True)
class Record:
    """A frozen record. Subclasses declare fields by annotation; a field without a default is required."""

    _fields: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[frozenset[str]] = frozenset()
    _required: ClassVar[frozenset[str]] = frozenset()
    _checks: ClassVar[dict[str, _Check]] = {}
    _wrong: ClassVar[type[HookturnError]] = EventError  # what a wrongly built record raises

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        fields = dict.fromkeys(cls._fields)
        required = set(cls._required)
        checks = dict(cls._checks)
        own = cls.__dict__
        for name, annotation in own.get("__annotations__", {}).items():
            if name[0] == "_":
                continue
            if annotation.__class__ is not str:
                is_field, check = _reading(annotation)
            elif annotation in _read:  # few annotations, many fields: a start has some 200
                is_field, check = _read[annotation]
            else:
                is_field, check = _read[annotation] = _reading(annotation)
            if not is_field:
                continue
            fields[name] = None
            if name in own:
                required.discard(name)
            else:
                required.add(name)
            if check is not None:
                checks[name] = check
            else:
                checks.pop(name, None)
        cls._fields = tuple(fields)
        cls._names = frozenset(fields)
        cls._required = frozenset(required)
        cls._checks = checks

    if not TYPE_CHECKING:

        def __init__(self, *values, **fields):
            cls = type(self)
            if values:
                if len(values) > len(cls._fields):
                    raise cls._wrong(
                        f"{cls.__name__} takes at most {len(cls._fields)} values, got {len(values)}"
                    )
                for name, value in zip(cls._fields, values, strict=False):
                    if name in fields:
                        raise cls._wrong(f"{cls.__name__} got two values for {name!r}")
                    fields[name] = value
            if not fields.keys() <= cls._names:
                name = next(name for name in fields if name not in cls._names)
                raise cls._wrong(f"{cls.__name__} has no field {name!r}{did_you_mean(name, cls._fields)}")
            if not cls._required <= fields.keys():
                missing = cls._required - fields.keys()
                raise cls._wrong(f"{cls.__name__} needs {', '.join(sorted(missing))}")
            checks = cls._checks
            for name, value in fields.items():
                check = checks.get(name)
                kind = value.__class__
                if check is not None:
                    usual, kinds = check
                    if kind is usual:
                        continue
                    # A subclass of what is asked for is right, too.
                    if kind not in kinds and (not isinstance(value, kinds) or kind is bool):
                        raise wrong_type(cls._wrong, f"{cls.__name__}.{name}", kinds[0], value)
                if kind not in _FROZEN and isinstance(value, (dict, list, tuple)):
                    fields[name] = freeze(value)
            self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is read-only: return Rewrite({name}=...) to change it")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is read-only")

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._fields)

    __hash__ = None  # type: ignore[assignment]  # compared by content, and content may hold dicts

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._fields if name in self.__dict__)
        return f"{type(self).__name__}({given})"

    @classmethod
    def _make(cls, fields: dict[str, Any]) -> Self:
        """Build a record from fields that are known to be right and frozen: no checks."""
        record = object.__new__(cls)
        record.__dict__.update(fields)
        return record


@dataclass_transform(frozen_default=True, kw_only_default=True)
class KeywordRecord(Record):
    """A record whose fields type checkers take by keyword only."""
