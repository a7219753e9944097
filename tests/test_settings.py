from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import SettingsError
from tocsin.settings import Settings, load, resolve
from tocsin.settings.keys import KEYS, SECTIONS, SettingKey, literal
from tocsin.settings.text import example, markdown

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _empty_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refusal(
    text: str = "", environ: dict[str, str] | None = None, overrides: tuple[str, ...] = (), path: Path | None = None
) -> str:
    if text:
        Path("tocsin.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as refused:
        load(path, environ or {}, overrides)
    return str(refused.value)


def test_without_any_source_every_key_has_its_default() -> None:
    resolved = resolve(environ={})
    assert resolved.settings == Settings()
    assert resolved.origins == {}


def test_each_source_wins_over_the_one_before() -> None:
    Path("tocsin.toml").write_text('[data]\nport = 1\nhost = "file"\ndirectory = "file"\n', encoding="utf-8")
    environ = {"TOCSIN_DATA_PORT": "2", "TOCSIN_DATA_HOST": "environment"}
    resolved = resolve(environ=environ, overrides=["data.port=3"])
    assert resolved.settings.data.port == 3
    assert resolved.settings.data.host == "environment"
    assert resolved.settings.data.directory == Path("file")
    assert resolved.origin("data.port") == "--set"
    assert resolved.origin("data.host") == "environment TOCSIN_DATA_HOST"
    assert resolved.origin("data.directory") == "tocsin.toml"
    assert resolved.origin("data.max_request_bytes") == "defaults"


def test_the_last_of_two_flags_for_a_key_wins() -> None:
    assert load(environ={}, overrides=["data.port=1", "data.port=2"]).data.port == 2


def test_a_path_wins_over_the_variable_and_that_over_the_working_directory(tmp_path: Path) -> None:
    for name, port in (("given.toml", 1), ("variable.toml", 2), ("tocsin.toml", 3)):
        (tmp_path / name).write_text(f"[data]\nport = {port}\n", encoding="utf-8")
    environ = {"TOCSIN_CONFIG": "variable.toml"}
    assert load(Path("given.toml"), environ).data.port == 1
    assert load(environ=environ).data.port == 2
    assert load(environ={}).data.port == 3


def test_a_file_that_was_named_must_exist() -> None:
    assert "nowhere.toml cannot be read: No such file" in refusal(path=Path("nowhere.toml"))
    assert "nowhere.toml cannot be read: No such file" in refusal(environ={"TOCSIN_CONFIG": "nowhere.toml"})


def test_a_file_that_is_not_toml_is_refused_with_the_place() -> None:
    assert "tocsin.toml is not TOML" in refusal("[data]\nport = \n")
    assert "line 2" in refusal("[data]\nport = \n")


def test_a_file_that_is_not_text_is_refused() -> None:
    Path("tocsin.toml").write_bytes(b"\xff\xfe")
    assert refusal() == "the settings file tocsin.toml is not UTF-8 text"


def test_an_unknown_key_is_refused_with_the_closest_known_one() -> None:
    assert refusal("[data]\nprot = 1\n") == (
        "data.prot = 1 (from tocsin.toml) is not a setting: did you mean data.port? "
        "the keys of [data] are directory, state, takeover_seconds, host, port, tls_certificate, tls_key, origins, "
        "connections, max_request_bytes"
    )


def test_an_unknown_section_is_refused_even_when_empty() -> None:
    message = refusal("[dta]\n")
    assert message.startswith("dta = {} (from tocsin.toml) is not a setting")
    assert message.endswith("the sections are " + ", ".join(SECTIONS))


def test_a_key_outside_its_section_is_recognised() -> None:
    assert "did you mean data.port?" in refusal("port = 8801\n")


def test_a_key_that_resembles_none_gets_no_suggestion() -> None:
    assert "did you mean" not in refusal(overrides=("data.zzzzzz=1",))


def test_a_value_where_a_section_belongs_is_refused() -> None:
    assert refusal("data = 5\n").startswith("data = 5 (from tocsin.toml) is not a setting")


def test_an_empty_known_section_changes_nothing() -> None:
    Path("tocsin.toml").write_text("[data]\n", encoding="utf-8")
    assert load(environ={}) == Settings()


def test_an_unknown_variable_of_a_known_section_is_refused() -> None:
    message = refusal(environ={"TOCSIN_DATA_PROT": "1"})
    assert "(from environment TOCSIN_DATA_PROT)" in message
    assert "did you mean data.port?" in message


def test_variables_of_others_are_left_alone() -> None:
    environ = {"TOCSIN_DEBUG": "1", "TOCSIN_TOKEN": "x", "DATA_PORT": "1", "TOCSIN_DATA": "x", "TOCSIN_data_port": "1"}
    assert load(environ=environ) == Settings()


def test_a_flag_without_a_value_is_refused() -> None:
    assert refusal(overrides=("data.port",)) == "--set data.port has no value: write it as --set data.port=8801"


@pytest.mark.parametrize(
    ("override", "allowed"),
    [
        ("data.port=65536", "a whole number from 0 to 65535"),
        ("data.port=-1", "a whole number from 0 to 65535"),
        ("data.port=eighty", "a whole number from 0 to 65535"),
        ("data.port=80.5", "a whole number from 0 to 65535"),
        ("data.port=true", "a whole number from 0 to 65535"),
        ("data.port=", "a whole number from 0 to 65535"),
        ("data.port=1\nx = 2", "a whole number from 0 to 65535"),
        ("data.directory=", "a path"),
        ("nodes.local=perhaps", "true or false"),
        ("nodes.share=perhaps", 'true or false or "auto"'),
        ("data.host=", "a text that is not empty"),
        ("data.max_request_bytes=1023", "a whole number of 1024 or more"),
        ("results.retention_seconds=0", "a number above 0, up to 1_000_000_000"),
        ("results.retention_seconds=inf", "a number above 0, up to 1_000_000_000"),
        ("results.retention_seconds=nan", "a number above 0, up to 1_000_000_000"),
        ("feeds.group_commit_ms=1001", "a number from 0 to 1000"),
        ("spark.driver_memory=2 gigabytes", 'a text such as "512m" or "2g"'),
        ("log.level=loud", 'one of "debug", "info", "warning", "error"'),
        ("spark.extra=x", 'a table of texts, such as { "name" = "value" }'),
    ],
)
def test_a_value_out_of_its_limits_is_refused_with_what_is_allowed(override: str, allowed: str) -> None:
    key = override.partition("=")[0]
    message = refusal(overrides=(override,))
    assert message.startswith(f"{key} = ")
    assert message.endswith(f"(from --set) is not allowed: it must be {allowed}")


@pytest.mark.parametrize("value", ['"8801"', "inf", "true", "[1, 2]", '{ "a" = 1 }', "1.5"])
def test_a_refused_value_is_shown_as_it_was_written(value: str) -> None:
    assert refusal(f"[data]\nport = {value}\n").startswith(f"data.port = {value} (from tocsin.toml) is not allowed")


def test_a_file_must_give_a_key_its_own_type() -> None:
    assert refusal('[data]\nport = "8801"\n').startswith('data.port = "8801" (from tocsin.toml) is not allowed')


def test_numbers_may_be_written_as_in_the_file() -> None:
    assert load(environ={"TOCSIN_FEEDS_SEGMENT_BYTES": "1_048_576"}).feeds.segment_bytes == 1_048_576
    assert load(environ={}, overrides=["lake.maintenance_seconds=5"]).lake.maintenance_seconds == 5.0


def test_a_home_directory_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert load(environ={"TOCSIN_DATA_DIRECTORY": "~/data"}).data.directory == Path("/home/someone/data")


def test_entries_of_a_table_add_up_over_the_sources() -> None:
    Path("tocsin.toml").write_text('[spark.extra]\n"a.b" = "file"\nc.d = "file"\n', encoding="utf-8")
    resolved = resolve(environ={"TOCSIN_SPARK_EXTRA": '{ "e" = "variable" }'}, overrides=["spark.extra.a.b=x=y"])
    assert resolved.settings.spark.extra == {"a.b": "x=y", "c.d": "file", "e": "variable"}
    assert resolved.origin("spark.extra.a.b") == "--set"
    assert resolved.origin("spark.extra.c.d") == "tocsin.toml"


def test_an_entry_of_a_table_must_be_a_text() -> None:
    assert "must be a table of texts" in refusal("[spark.extra]\nenabled = true\n")


def test_waits_that_shrink_are_refused_naming_both_keys() -> None:
    message = refusal("[channels]\nretry_seconds = 90\n")
    assert message.startswith("channels.max_retry_seconds = 60.0 (from defaults) is not allowed")
    assert message.endswith("at least channels.retry_seconds = 90.0 (from tocsin.toml)")


def test_a_backlog_smaller_than_one_request_is_refused() -> None:
    assert "at least data.max_request_bytes" in refusal(overrides=("feeds.max_backlog_bytes=1024",))


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.dotted)
def test_every_key_is_described_and_its_default_allowed(key: SettingKey) -> None:
    assert key.description.endswith(".")
    assert key.convert(tomllib.loads(f"value = {literal(key.default)}")["value"]) == key.default


def test_no_two_keys_share_a_variable() -> None:
    assert len({key.variable for key in KEYS.values()}) == len(KEYS)
    assert not any("_" in section for section in SECTIONS)


def test_the_example_file_gives_exactly_the_defaults() -> None:
    Path("tocsin.toml").write_text(example(), encoding="utf-8")
    resolved = resolve(environ={})
    assert resolved.settings == Settings()
    assert set(resolved.origins) == set(KEYS) - {"spark.extra"}


def test_the_generated_files_are_current() -> None:
    advice = "run make docs"
    assert (ROOT / "tocsin.example.toml").read_text(encoding="utf-8") == example(), advice
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == markdown(), advice


texts = st.text(st.characters(codec="utf-8"), min_size=1)


@given(port=st.integers(0, 65_535), host=texts, wait=st.floats(0.001, 60), extra=st.dictionaries(texts, texts))
def test_a_written_file_reads_back_as_the_same_settings(
    tmp_path_factory: pytest.TempPathFactory, port: int, host: str, wait: float, extra: dict[str, str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "written.toml"
    path.write_text(
        f"[data]\nport = {literal(port)}\nhost = {literal(host)}\n"
        f"[channels]\nretry_seconds = {literal(wait)}\n[spark]\nextra = {literal(extra)}\n",
        encoding="utf-8",
    )
    loaded = load(path, {})
    assert (loaded.data.port, loaded.data.host, loaded.channels.retry_seconds) == (port, host, wait)
    assert loaded.spark.extra == extra


@given(st.dictionaries(st.sampled_from([key.variable for key in KEYS.values()]), st.text(max_size=8)))
def test_any_environment_gives_settings_or_a_settings_error(environ: dict[str, str]) -> None:
    try:
        loaded = load(environ=environ)
    except SettingsError:
        return
    assert msgspec.structs.asdict(loaded).keys() == SECTIONS.keys()
