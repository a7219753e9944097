"""The keys of the settings as data: found by name, checked one by one, described in words."""

from __future__ import annotations

import difflib
import json
import tomllib
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
from msgspec import inspect

from tocsin.settings.section import Section
from tocsin.settings.sections import Settings


class SettingKey(msgspec.Struct, frozen=True):
    """One setting. ``kind`` is msgspec's description of its type, ``annotation`` the type itself.

    ``examples`` are values it takes: a few for a text, all of them where there are only a few.
    """

    section: str
    name: str
    annotation: Any
    kind: inspect.Type
    default: object
    description: str
    examples: tuple[str, ...] = ()

    @property
    def dotted(self) -> str:
        """Its name on the command line and in messages, as in ``data.port``."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        return f"TOCSIN_{self.section}_{self.name}".upper()

    @property
    def is_table(self) -> bool:
        """Whether its value is a table of texts, whose entries are set one by one."""
        return isinstance(self.kind, inspect.DictType)

    @property
    def allowed(self) -> str:
        """What its value may be, in words that complete "it must be"."""
        return _describe_allowed(self.kind, self.examples)

    def parse(self, text: str) -> object:
        """The value that ``text`` stands for: texts and paths as they are, all else written as in the settings file."""
        if isinstance(self.kind, inspect.StrType | inspect.LiteralType | inspect.CustomType):
            return text
        try:
            document = tomllib.loads(f"value = {text}")
        except tomllib.TOMLDecodeError:
            return text
        return document["value"] if len(document) == 1 else text

    def convert(self, value: object) -> object:
        """``value`` as the key's type; raises ``msgspec.ValidationError`` when it is not allowed."""
        return msgspec.convert(value, self.annotation, dec_hook=_path)


def _path(_: type, value: object) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("not a path")
    return Path(value).expanduser()


def _describe_allowed(kind: inspect.Type, examples: tuple[str, ...]) -> str:
    match kind:
        case inspect.LiteralType():
            quoted = [f'"{example}"' for example in examples]
            return f"one of {', '.join(quoted)}" if len(quoted) > 1 else quoted[0]
        case inspect.BoolType():
            return "true or false"
        case inspect.UnionType(types=kinds):
            return " or ".join(_describe_allowed(one, _values(one)) for one in kinds)
        case inspect.IntType(ge=low, le=high):
            return f"a whole number {_span(low, high)}"
        case inspect.FloatType(gt=None, ge=low, le=high):
            return f"a number {_span(low, high)}"
        case inspect.FloatType(gt=low, le=high):
            return f"a number above {number(low)}, up to {number(high)}"
        case inspect.StrType() if examples:
            return "a text such as " + " or ".join(f'"{example}"' for example in examples)
        case inspect.StrType(min_length=None):
            return "a text"
        case inspect.StrType():
            return "a text that is not empty"
        case inspect.ListType(item_type=inspect.StrType()):
            return "a list of texts, such as " + literal(list(examples) or ["a", "b"])
        case inspect.ListType():
            return "a list of numbers, such as [1.5, 2.5]"
        case inspect.DictType():
            return 'a table of texts, such as { "name" = "value" }'
        case _:
            return "a path"


def _values(kind: inspect.Type) -> tuple[str, ...]:
    return tuple(map(str, kind.values)) if isinstance(kind, inspect.LiteralType) else ()


def _span(low: float | None, high: float | None) -> str:
    return f"of {number(low)} or more" if high is None else f"from {number(low)} to {number(high)}"


def number(value: float | None) -> str:
    """A number with underscores once it is hard to read without."""
    return f"{value:_}" if value is not None and abs(value) >= 100_000 else f"{value}"


def literal(value: object) -> str:
    """A value as the settings file writes it."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return number(value)
        case list():
            return f"[{', '.join(literal(item) for item in value)}]"
        case dict():
            entries = ", ".join(f"{literal(name)} = {literal(entry)}" for name, entry in value.items())
            return f"{{ {entries} }}" if entries else "{}"
        case _:
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _keys_of(name: str, section: type[Section]) -> list[SettingKey]:
    annotations = get_type_hints(section, include_extras=True)
    return [_key(name, field, annotations[field.name]) for field in msgspec.structs.fields(section)]


def _key(section: str, field: msgspec.structs.FieldInfo, annotation: object) -> SettingKey:
    information = inspect.type_info(annotation)
    assert isinstance(information, inspect.Metadata)
    assert information.extra_json_schema is not None
    about = information.extra_json_schema
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    literal = isinstance(information.type, inspect.LiteralType)
    examples = get_args(get_args(annotation)[0]) if literal else tuple(about.get("examples", ()))
    return SettingKey(section, field.name, annotation, information.type, default, about["description"], examples)


SECTIONS: dict[str, type[Section]] = {field.name: field.type for field in msgspec.structs.fields(Settings)}
KEYS: dict[str, SettingKey] = {key.dotted: key for name, section in SECTIONS.items() for key in _keys_of(name, section)}


def find(dotted: str) -> tuple[SettingKey, str] | None:
    """The key of that name, and the entry meant when it is a table (``spark.extra.spark.ui.enabled``), else ``""``."""
    section, _, rest = dotted.partition(".")
    name, _, entry = rest.partition(".")
    key = KEYS.get(f"{section}.{name}")
    if key is None or (entry and not key.is_table):
        return None
    return key, entry


def closest(dotted: str) -> SettingKey | None:
    """The key that was probably meant by a name that is none."""
    similar = difflib.get_close_matches(dotted, KEYS, n=1, cutoff=0.75)
    if similar:
        return KEYS[similar[0]]
    names = {key.name: key for key in reversed(KEYS.values())}
    similar = difflib.get_close_matches(dotted.rpartition(".")[2], names, n=1, cutoff=0.8)
    return names[similar[0]] if similar else None
