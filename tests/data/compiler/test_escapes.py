"""Ways out of a body: to the server's files, settings, environment and code. Nobody gets out, an admin neither."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.data.compiler.conftest import Channels
from tocsin.data.compiler import meaning, plans, query, words
from tocsin.data.compiler.check import check
from tocsin.data.compiler.functions import FUNCTIONS
from tocsin.errors import StatementError
from tocsin.schema.definitions import Channel, ChannelKind, Dataset

pytestmark = pytest.mark.spark

ESCAPES = {
    "a file by a computed name": "SELECT * FROM IDENTIFIER(concat('text.`', '/etc/passwd`'))",
    "a file by a computed name, joined": "SELECT r.id FROM Reports r JOIN IDENTIFIER('tex' || 't.`/etc/passwd`') t",
    "a file by a name in quotes": "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')",
    "a file by its path": "SELECT * FROM text.`/etc/passwd`",
    "a file in a subquery": "SELECT r.id FROM Reports r WHERE r.id IN (SELECT value FROM text.`/etc/passwd`)",
    "a file in a common table": "WITH t AS (SELECT * FROM json.`/etc/passwd`) SELECT * FROM t",
    "a file in a lateral subquery": "SELECT r.id FROM Reports r, LATERAL (SELECT * FROM binaryFile.`/etc/passwd`) t",
    "a file behind a pipe": "SELECT r.id FROM Reports r |> JOIN IDENTIFIER('text' || '.`/etc/passwd`') t",
    "a file in a set operation": "SELECT id FROM Reports UNION ALL SELECT value FROM IDENTIFIER('text.`/etc' || '/x`')",
    "a file read as a table": "SELECT id FROM Reports UNION ALL TABLE IDENTIFIER('text.`/etc' || '/passwd`')",
    "a file of another machine": "SELECT * FROM parquet.`hdfs://elsewhere/secret`",
    "a database": "SELECT * FROM jdbc.`jdbc:sqlite:state.sqlite`",
    "a table of the session": "SELECT * FROM spark_catalog.default.secrets",
    "a table by a computed name": "SELECT * FROM IDENTIFIER('global_temp.' || 'secrets')",
    "a table function by a computed name": "SELECT * FROM IDENTIFIER('python_worker' || '_logs')()",
    "the workers' logs": "SELECT * FROM python_worker_logs()",
    "the words of SQL": "SELECT * FROM sql_keywords()",
    "the collations": "SELECT * FROM collations()",
    "a stream": "SELECT * FROM STREAM(Reports)",
    "files by a function": "SELECT * FROM read_files('/etc/passwd')",
    "the state of a stream": "SELECT * FROM read_statestore('/tmp')",
    "a method of Java's": "SELECT reflect('java.lang.System', 'getenv', 'HOME') AS t FROM Reports",
    "the same, otherwise called": "SELECT java_method('java.lang.System', 'getenv', 'HOME') AS t FROM Reports",
    "the same, tried": "SELECT try_reflect('java.lang.System', 'getenv', 'HOME') AS t FROM Reports",
    "the same, by its whole name": "SELECT system.builtin.reflect('java.lang.System', 'getenv', 'HOME') AS t",
    "the same, in capitals": "SELECT REFLECT('java.lang.System', 'getenv', 'HOME') AS t FROM Reports",
    "the same, in quotes": "SELECT `reflect`('java.lang.System', 'getenv', 'HOME') AS t FROM Reports",
    "the same, by a computed name": "SELECT IDENTIFIER('refl' || 'ect')('java.lang.System', 'nanoTime') AS t",
    "the same, in an order": "SELECT r.id FROM Reports r ORDER BY reflect('java.lang.System', 'getenv', r.id)",
    "the same, in a window": (
        "SELECT count(*) OVER w AS n FROM Reports r WINDOW w AS (ORDER BY reflect('java.lang.System', 'getenv', r.id))"
    ),
    "the same, in a lambda": (
        "SELECT transform(q.tags, t -> reflect('java.lang.System', 'getenv', t)) AS x FROM Quotes q"
    ),
    "the same, among values": "SELECT * FROM VALUES (reflect('java.lang.System', 'getenv', 'HOME')) AS t(a)",
    "the same, as a schema": "SELECT from_json(r.id, reflect('java.lang.System', 'getenv', 'X')) AS j FROM Reports r",
    "the same, as a limit": "SELECT r.id FROM Reports r ORDER BY id LIMIT CAST(reflect('java.lang.Math', 'x') AS INT)",
    "the same, as a table": "SELECT * FROM explode(array(reflect('java.lang.System', 'getenv', 'HOME')))",
    "the same, in a lateral view": (
        "SELECT r.id, t FROM Reports r LATERAL VIEW explode(array(reflect('java.lang.System', 'nanoTime'))) v AS t"
    ),
    "a program": "SELECT TRANSFORM (r.id) USING 'cat' AS (id STRING) FROM Reports r",
    "a descriptor of protobuf's": "SELECT from_protobuf(CAST(r.id AS BINARY), 'm', '/etc/passwd') AS m FROM Reports r",
    "a schema of XML": (
        "SELECT from_xml(r.message, 'a INT', map('rowValidationXSDPath', '/etc/passwd')) AS x FROM Reports r"
    ),
    "a schema of XML, in another case": (
        "SELECT from_xml(r.message, 'a INT', map('ROWVALIDATIONXSDPATH', '/etc/passwd')) AS x FROM Reports r"
    ),
    "a schema of XML, of its schema": (
        "SELECT schema_of_xml('<a/>', map('rowValidationXsdPath', '/etc/passwd')) AS x FROM Reports r"
    ),
    "the file that is read": "SELECT input_file_name() AS f FROM Reports",
    "the block that is read": "SELECT input_file_block_length() AS f FROM Reports",
    "a variable of the session": "SELECT system.session.secret AS s FROM Reports",
    "a parameter of the statement": "SELECT :secret AS s FROM Reports",
    "the path of names": "SELECT current_path() AS p FROM Reports",
    "the version": "SELECT version() AS v FROM Reports",
    "the catalog": "SELECT current_catalog() AS c FROM Reports",
    "the user": "SELECT session_user() AS u FROM Reports",
    "the time zone": "SELECT current_timezone() AS z FROM Reports",
    "the time of day": "SELECT current_time() AS t FROM Reports",
    "chance, with a seed": "SELECT uniform(0, 10, 1) AS u FROM Reports",
    "chance, as text": "SELECT randstr(3, 0) AS u FROM Reports",
    "chance, in an order": "SELECT shuffle(q.tags) AS t FROM Quotes q",
    "a cipher with chance in it": "SELECT base64(aes_encrypt(r.id, 'abcdefghijklmnop')) AS c FROM Reports r",
    "the part of the work": "SELECT spark_partition_id() AS p FROM Reports",
    "a number for each row": "SELECT monotonically_increasing_id() AS i FROM Reports",
    "another statement": "EXECUTE IMMEDIATE 'SELECT 1'",
    "another statement, in parentheses": "(EXECUTE IMMEDIATE 'SELECT 1')",
    "a directory to write": (
        "WITH a AS (SELECT 1 AS one) INSERT OVERWRITE DIRECTORY '/tmp/out' USING json SELECT * FROM a"
    ),
    "a table to write": "WITH a AS (SELECT 1 AS one) FROM a INSERT INTO Reports SELECT *",
    "a block of statements": "BEGIN SELECT 1; END",
}


@pytest.mark.parametrize("what", ESCAPES)
def test_a_body_reads_datasets_and_nothing_else(
    what: str, session: SparkSession, datasets: Mapping[str, Dataset]
) -> None:
    with pytest.raises(StatementError) as refused:
        check(session, Channel("Out", ChannelKind.CONTINUOUS, (), ESCAPES[what]), datasets)
    assert "root:" not in str(refused.value)


@pytest.mark.parametrize(
    "what", [what for what, body in ESCAPES.items() if "reflect" in body.casefold() and "IDENTIFIER" not in body]
)
def test_what_its_plan_does_is_judged_even_if_its_text_was_not_understood(
    what: str, session: SparkSession, datasets: Mapping[str, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "_check_names", lambda *_: None)
    with pytest.raises(StatementError):
        check(session, Channel("Out", ChannelKind.CONTINUOUS, (), ESCAPES[what]), datasets)


def test_a_file_in_the_plan_is_refused_whatever_it_was_called(
    session: SparkSession, datasets: Mapping[str, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = session.newSession()
    files.conf.set("spark.sql.runSQLOnFiles", "true")
    monkeypatch.setattr(words, "_check_names", lambda *_: None)
    monkeypatch.setattr(query, "SETTINGS", {"spark.sql.runSQLOnFiles": "true"})
    body = "SELECT * FROM IDENTIFIER(concat('text.`', '/etc/passwd`'))"
    with pytest.raises(StatementError, match="reads datasets and nothing else"):
        check(files, Channel("Out", ChannelKind.CONTINUOUS, (), body), datasets)


@pytest.mark.parametrize("hidden", ["env:HOME", "system:user.home", "spark.driver.memory", "spark:spark.app.name"])
def test_what_looks_like_a_setting_of_the_server_is_only_text(
    hidden: str, session: SparkSession, datasets: Mapping[str, Dataset], channel: Channels
) -> None:
    body = f"SELECT concat('${{{hidden}}}', r.id) AS secret FROM Reports r WHERE r.id = who"
    compiled = check(session, channel("who STRING", body), datasets)
    assert f"${{{hidden}}}" in compiled.statement
    shown = session.sql(f"SELECT '${{{hidden}}}' AS text").collect()
    assert [row.text for row in shown] == [f"${{{hidden}}}"]


def test_an_entity_of_xml_reads_no_file(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("told")
    xml = f'<!DOCTYPE a [<!ENTITY e SYSTEM "{(tmp_path / "secret").as_uri()}">]><a><b>&e;</b></a>'
    read = session.sql(f"SELECT xpath_string('{xml}', 'a/b') AS path, from_xml('{xml}', 'b STRING') AS xml")
    assert "told" not in str(read.collect())


def test_every_function_that_may_be_called_is_one_of_spark_or_ours(session: SparkSession) -> None:
    state = session._jsparkSession.sessionState()
    known = {
        str(found.funcName())
        for registry in (state.functionRegistry(), state.tableFunctionRegistry())
        for found in plans.sequence(registry.listFunction().toSeq())
    }
    assert FUNCTIONS - known == {"is_new", "near"}
    assert not FUNCTIONS & {"reflect", "java_method", "try_reflect", "from_protobuf", "input_file_name"}


def test_nothing_is_carried_out_while_a_body_is_looked_at(session: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "written"
    plan = plans.parse(session, f"INSERT OVERWRITE DIRECTORY '{target}' USING json SELECT 1 AS one")
    plans.analyse(session, plan)
    assert not target.exists()
    assert "InsertIntoDir" not in meaning._OPERATORS
