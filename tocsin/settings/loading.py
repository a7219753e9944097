"""Where values come from: the settings file, the environment and flags, checked and laid over the defaults."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from tocsin.errors import SettingsError
from tocsin.settings.keys import KEYS, SECTIONS, SettingKey, closest, find
from tocsin.settings.secrets import show_value
from tocsin.settings.sections import Settings

FILE = "tocsin.toml"
VARIABLE_OF_FILE = "TOCSIN_CONFIG"
DEFAULT = "defaults"


class Given(NamedTuple):
    """A value some source gives to a key, and that source in words. ``dotted`` is the key as the source names it."""

    dotted: str
    value: object
    origin: str


class Resolved(msgspec.Struct, frozen=True):
    """Settings with the origin of every value that is not a default, by dotted key."""

    settings: Settings
    origins: dict[str, str]

    def origin(self, dotted: str) -> str:
        """Where the value of a key, or of an entry of a table, came from."""
        return self.origins.get(dotted, DEFAULT)

    def value(self, dotted: str) -> object:
        """The value of a key."""
        section, _, name = dotted.partition(".")
        return getattr(getattr(self.settings, section), name)


def load(path: Path | None = None, environ: Mapping[str, str] | None = None, overrides: Iterable[str] = ()) -> Settings:
    """The settings in effect.

    ``path`` is the settings file; without it, the one ``TOCSIN_CONFIG`` names, else ``tocsin.toml`` in the working
    directory if there is one. ``environ`` is the process's environment unless given. ``overrides`` are flags as
    written: ``data.port=8801``. Raises ``SettingsError``.
    """
    return resolve(path, environ, overrides).settings


def resolve(
    path: Path | None = None, environ: Mapping[str, str] | None = None, overrides: Iterable[str] = ()
) -> Resolved:
    """As ``load``, and where each value came from."""
    environ = os.environ if environ is None else environ
    settled: dict[str, Given] = {}
    for given in (*_from_file(_file(path, environ)), *_from_environment(environ), *_from_flags(overrides)):
        settled |= {accepted.dotted: accepted for accepted in _accept(given)}
    resolved = Resolved(_assemble(settled), {dotted: given.origin for dotted, given in settled.items()})
    _check_together(resolved)
    return resolved


def _file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    if path is not None:
        return path
    if environ.get(VARIABLE_OF_FILE):
        return Path(environ[VARIABLE_OF_FILE])
    return Path(FILE) if Path(FILE).exists() else None


def _from_file(path: Path | None) -> Iterator[Given]:
    if path is None:
        return
    for section, body in _document(path).items():
        if isinstance(body, dict) and (body or section in SECTIONS):
            yield from (Given(f"{section}.{name}", value, str(path)) for name, value in body.items())
        else:
            yield Given(section, body, str(path))


def _document(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"the settings file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"the settings file {path} is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"the settings file {path} is not TOML: {error}") from error


def _from_environment(environ: Mapping[str, str]) -> Iterator[Given]:
    """Variables that begin with ``TOCSIN_`` and a section's name; others may belong to someone else."""
    for variable in sorted(environ):
        prefix, _, rest = variable.partition("_")
        section, _, name = rest.lower().partition("_")
        if prefix == "TOCSIN" and section in SECTIONS and name and variable.isupper():
            yield _parse(f"{section}.{name}", environ[variable], f"environment {variable}")


def _from_flags(overrides: Iterable[str]) -> Iterator[Given]:
    for override in overrides:
        dotted, equals, text = override.partition("=")
        if not equals:
            raise SettingsError(f"--set {override} has no value: write it as --set data.port=8801")
        yield _parse(dotted.strip(), text, "--set")


def _parse(dotted: str, text: str, origin: str) -> Given:
    found = find(dotted)
    whole = found is not None and not found[1]
    return Given(dotted, found[0].parse(text) if found and whole else text, origin)


def _accept(given: Given) -> Iterator[Given]:
    """What is given, as the type of its key; a table as its entries, so that sources add to it entry by entry."""
    found = find(given.dotted)
    if found is None:
        raise _unknown_key_error(given)
    key, entry = found
    value = {entry: given.value} if entry else given.value
    if key.is_table and isinstance(value, dict):
        value = _flat(value)
    try:
        converted = key.convert(value)
    except msgspec.ValidationError:
        raise SettingsError(f"{_show(given)} is not allowed: it must be {key.allowed}") from None
    if isinstance(converted, dict):
        yield from (Given(f"{key.dotted}.{name}", text, given.origin) for name, text in converted.items())
    else:
        yield Given(key.dotted, converted, given.origin)


def _flat(table: Mapping[str, object]) -> dict[str, object]:
    """A table with dotted names where TOML made nested tables of names written without quotes."""
    flat: dict[str, object] = {}
    for name, value in table.items():
        nested = _flat(value) if isinstance(value, dict) else None
        flat |= {name: value} if nested is None else {f"{name}.{inner}": entry for inner, entry in nested.items()}
    return flat


def _unknown_key_error(given: Given) -> SettingsError:
    section = given.dotted.partition(".")[0]
    probable = closest(given.dotted)
    hint = f"did you mean {probable.dotted}? " if probable else ""
    return SettingsError(f"{_show(given)} is not a setting: {hint}{_list_known(section)}")


def _list_known(section: str) -> str:
    if section in SECTIONS:
        return f"the keys of [{section}] are {', '.join(key.name for key in KEYS.values() if key.section == section)}"
    return f"the sections are {', '.join(SECTIONS)}"


def _show(given: Given) -> str:
    return f"{given.dotted} = {show_value(given.dotted, given.value)} (from {given.origin})"


def _assemble(settled: Mapping[str, Given]) -> Settings:
    sections = {name: section(**_values(name, settled)) for name, section in SECTIONS.items()}
    return msgspec.structs.replace(Settings(), **sections)


def _values(section: str, settled: Mapping[str, Given]) -> dict[str, object]:
    values: dict[str, object] = {}
    for key in (key for key in KEYS.values() if key.section == section):
        if key.is_table:
            values[key.name] = _table(key, settled)
        elif key.dotted in settled:
            values[key.name] = settled[key.dotted].value
    return values


def _table(key: SettingKey, settled: Mapping[str, Given]) -> dict[str, object]:
    prefix = f"{key.dotted}."
    return {dotted.removeprefix(prefix): given.value for dotted, given in settled.items() if dotted.startswith(prefix)}


def _check_together(resolved: Resolved) -> None:
    """Refuse what each key allows but no system can work with."""
    settings = resolved.settings
    if settings.channels.max_retry_seconds < settings.channels.retry_seconds:
        raise _smaller(resolved, "channels.max_retry_seconds", "channels.retry_seconds")
    if settings.feeds.max_backlog_bytes < settings.data.max_request_bytes:
        raise _smaller(resolved, "feeds.max_backlog_bytes", "data.max_request_bytes")


def _smaller(resolved: Resolved, smaller: str, larger: str) -> SettingsError:
    small, large = (
        _show(Given(dotted, resolved.value(dotted), resolved.origin(dotted))) for dotted in (smaller, larger)
    )
    return SettingsError(f"{small} is not allowed: it must be at least {large}")
