"""The settings as people read them: the commented example file, and the page of the documentation."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tocsin.settings.keys import KEYS, SECTIONS, SettingKey, literal
from tocsin.settings.section import GIB, KIB, MIB

WIDTH = 110

_TOML_HEAD = """\
# Tocsin's settings: every key with its default. Copy this file to tocsin.toml, keep what you change.
# Any key can also be set by an environment variable (TOCSIN_DATA_PORT=8801) or a flag (--set data.port=8801).
"""

_MARKDOWN_HEAD = """\
# Settings

Settings are read from four sources; a later one wins over an earlier one:

1. the defaults below;
2. the settings file: the one named with `--config`, else by the environment variable `TOCSIN_CONFIG`, else
   `tocsin.toml` in the working directory if there is one.
   [`tocsin.example.toml`](../tocsin.example.toml) has every key with its default;
3. environment variables, `TOCSIN_<SECTION>_<KEY>`: `TOCSIN_DATA_PORT=8801`;
4. flags before the command: `tocsin --set data.port=8801 settings`.

Numbers are written as in TOML (`8_388_608`). The entries of a table such as `spark.extra` add up over the sources; one
of them is set with `--set spark.extra.spark.sql.ansi.enabled=true`, or several with
`TOCSIN_SPARK_EXTRA='{ "spark.sql.ansi.enabled" = "true" }'`.

An unknown key or a value that is not allowed stops the program with a sentence that says which, where it came from and
what is allowed. `tocsin settings` shows the settings in effect and where each came from. Kubernetes makes variables
such as `TOCSIN_DATA_PORT` for a service named `tocsin-data`: give that service another name, or set
`enableServiceLinks: false`.

This page is made by `make docs`.
"""


def example() -> str:
    """A settings file with every key at its default, each explained."""
    return "\n".join([_TOML_HEAD, *("\n".join(_toml_section(name)) for name in SECTIONS)])


def markdown() -> str:
    """The page ``docs/settings.md``."""
    return "\n".join([_MARKDOWN_HEAD, *("\n".join(_markdown_section(name)) for name in SECTIONS)])


def _keys(section: str) -> Iterator[SettingKey]:
    return (key for key in KEYS.values() if key.section == section)


def _toml_section(name: str) -> Iterator[str]:
    yield from _comment(_about(name))
    yield f"[{name}]"
    for key in _keys(name):
        yield from _comment(f"{key.description} Allowed: {key.allowed}.")
        yield f"{key.name} = {literal(key.default)}{_remark(key, '  # ')}"
    yield ""


def _markdown_section(name: str) -> Iterator[str]:
    yield from (f"## [{name}]", "", _about(name), "", "| key | default | allowed | meaning |", "|---|---|---|---|")
    for key in _keys(name):
        default = f"`{literal(key.default)}`{_remark(key, ', ')}"
        yield f"| `{key.dotted}` | {default} | {key.allowed} | {key.description} |"
    yield ""


def _about(section: str) -> str:
    return (SECTIONS[section].__doc__ or "").strip()


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, WIDTH)]


def _remark(key: SettingKey, separator: str) -> str:
    """A size in the unit people think in."""
    if not key.name.endswith("_bytes") or not isinstance(key.default, int):
        return ""
    unit, name = next((unit, name) for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")) if key.default >= unit)
    return f"{separator}{key.default // unit} {name}"
