"""Channels compiled, and remembered as such: what takes Spark a second to check, a start need not check again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
import pyspark
from pyspark.sql import SparkSession

import tocsin
from tocsin.data.compiler.check import RULES, Compiled, check
from tocsin.data.compiler.query import JSON
from tocsin.log import get_logger
from tocsin.schema.definitions import Channel, Dataset

log = get_logger(__name__)


class Compiler:
    """Compiles channels over ``datasets``, which may change meanwhile.

    Args:
        directory: where compiled channels are kept; its content may be deleted at any time.
        spark: gives the session, which it may have to wait for.
    """

    def __init__(self, directory: Path, datasets: Mapping[str, Dataset], spark: Callable[[], SparkSession]) -> None:
        self._directory, self._datasets, self._spark = directory, datasets, spark

    def over(self, datasets: Mapping[str, Dataset]) -> Compiler:
        """The same over other datasets."""
        return Compiler(self._directory, datasets, self._spark)

    def compile(self, channel: Channel) -> Compiled:
        """The compiled channel, from an earlier check of the very same thing if there was one.

        Raises StatementError with the line and column in the channel's body.
        """
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(self._file(channel).read_bytes(), type=Compiled)
        compiled = check(self._spark(), channel, self._datasets)
        try:
            self._keep(channel, compiled)
        except OSError as error:
            log.warning("a compiled channel is not remembered", channel=channel.name, reason=str(error))
        return compiled

    def forget(self, channel: str) -> None:
        """A channel that is no more."""
        for file in self._directory.glob(f"{channel}-*.json"):
            file.unlink(missing_ok=True)

    def _keep(self, channel: Channel, compiled: Compiled) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        self.forget(channel.name)
        file = self._file(channel)
        draft = file.with_suffix(".draft")
        draft.write_bytes(msgspec.json.encode(compiled))
        draft.replace(file)

    def _file(self, channel: Channel) -> Path:
        datasets = sorted(self._datasets.values(), key=lambda dataset: dataset.name)
        known = msgspec.json.encode([tocsin.__version__, RULES, JSON, pyspark.__version__, channel, datasets])
        digest = hashlib.blake2b(known, digest_size=8).hexdigest()
        return self._directory / f"{channel.name}-{digest}.json"
