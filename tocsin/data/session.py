"""The Spark session of a data cluster, set for many small jobs rather than few large ones."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tocsin.data.compiler import query
from tocsin.errors import UnavailableError
from tocsin.settings import SparkSettings

_LOGGING = Path(__file__).with_name("log4j2.properties")
_START_SECONDS: Final = 120
_STOP_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.02
_FIXED = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.scheduler.mode": "FAIR",
    # A stage of an execution is small and its sizes are known; re-planning after each costs more than it gains.
    "spark.sql.adaptive.enabled": "false",
    # New records are a few megabytes: always the side to broadcast, so that a million subscriptions are only streamed.
    "spark.sql.autoBroadcastJoinThreshold": "64m",
    # File listings and schema look-ups as Spark jobs would take longer than the reading itself.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The streaming checkpoint is disposable (the Delta markers are the progress): the cheapest way to write it.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.pollingDelay": "20ms",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.cleaner.periodicGC.interval": "5min",
    # A value on which Java recurses deeper than its stack fails a task, and must not end the process: it would do so
    # again after each start. Want of memory still does (_OF_MEMORY): who lacks it may be another than who has it.
    "spark.executor.killOnFatalError.depth": "0",
}
_OF_MEMORY: Final = "-XX:+ExitOnOutOfMemoryError"
_PACKAGES: Final = "spark.jars.packages"
_CONNECTOR: Final = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
_S3_CLASS: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_JARS: Final = frozenset({"spark.jars", _PACKAGES})
_JARS_HINT: Final = (
    "; reading from Kafka or S3 needs Spark's connectors: where {packages} cannot be fetched, name the jars in "
    'spark.extra, as "spark.jars"'
)


def start(
    settings: SparkSettings, scratch: Path, kafka: bool = False, lake: Mapping[str, str] = MappingProxyType({})
) -> SparkSession:
    """Starts Spark, or connects to the cluster that ``spark.master`` names; ``scratch`` is for temporary files.

    With ``kafka`` it can read from there: its connector is fetched in Spark's own version, unless the settings name
    its jars. ``lake`` is what it takes to read the lake, and its connector comes in the same way.
    """
    packages = connectors(settings, kafka, lake)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Of a cluster, the executors may have theirs elsewhere: in an image, or unpacked from an archive.
    os.environ["PYSPARK_PYTHON"] = settings.extra.get("spark.pyspark.python", sys.executable)
    builder = SparkSession.builder.appName("tocsin").master(settings.master)
    configured = {
        **_FIXED,
        **query.SETTINGS,
        "spark.driver.memory": settings.driver_memory,
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.local.dir": str(scratch),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()} {_OF_MEMORY}",
        "spark.executor.extraJavaOptions": _OF_MEMORY,
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **{name: value for name, value in lake.items() if name != _PACKAGES},
        **({_PACKAGES: packages} if packages else {}),
        **settings.extra,
    }
    for key, value in configured.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise UnavailableError(
            f"Spark did not start with master {settings.master!r} ({type(error).__name__}: {error}); "
            "check that java -version prints 17 or newer and that spark.master is right"
            f"{_JARS_HINT.format(packages=packages) if packages else ''}"
        ) from error
    spark.sparkContext.setLogLevel("ERROR")
    # Errors of a query are reported by whoever asked for it.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    if lake:
        _check_s3(spark)
    return spark


def connectors(settings: SparkSettings, kafka: bool, lake: Mapping[str, str]) -> str:
    """The packages that Spark is to fetch: none if the settings name jars, which are to be all it needs."""
    wanted = [_CONNECTOR if kafka else "", lake.get(_PACKAGES, "")]
    return "" if _JARS & settings.extra.keys() else ",".join(filter(None, wanted))


def _check_s3(spark: SparkSession) -> None:
    """Otherwise every execution would say the same, in Java's words."""
    jvm: Any = spark.sparkContext._jvm
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_S3_CLASS)
    except Py4JError:
        spark.stop()
        raise UnavailableError(
            "Spark cannot read the lake in S3, for the jars that spark.extra names lack hadoop-aws: add it with what "
            "it needs (docs/operating.md has the list), or name none, so that they are fetched"
        ) from None


def stop(spark: SparkSession) -> None:
    """Stops Spark, once the tasks that were cancelled have ended: one that ends later than Spark tells it at length."""
    patience = time.monotonic() + _STOP_SECONDS
    with suppress(Py4JError):
        while _running_tasks(spark) and time.monotonic() < patience:
            time.sleep(_LOOK_SECONDS)
    spark.stop()


def _running_tasks(spark: SparkSession) -> int:
    tracker: Any = spark.sparkContext._jsc
    return sum(executor.numRunningTasks() for executor in tracker.sc().statusTracker().getExecutorInfos())


def wait_for_end(spark: SparkSession) -> int:
    """Waits until the process that runs Spark's driver is gone; its exit status."""
    return int(spark.sparkContext._gateway.proc.wait())  # type: ignore[union-attr]


def has_ended(spark: SparkSession) -> bool:
    """Whether the process that runs Spark's driver is gone."""
    return spark.sparkContext._gateway.proc.poll() is not None  # type: ignore[union-attr]


def is_local(spark: SparkSession) -> bool:
    """Whether everything runs in this machine's driver process."""
    return is_local_master(str(spark.sparkContext.master))


def is_local_master(master: str) -> bool:
    """Whether a master means that there are no executors but the driver itself."""
    return master.startswith("local") and not master.startswith("local-cluster")


def wait_for_session(promise: Future[SparkSession]) -> SparkSession:
    """Spark, waited for if it is still starting; UnavailableError if that takes too long."""
    try:
        return promise.result(_START_SECONDS)
    except NotYet:
        raise UnavailableError("Spark has not started yet; try again in a moment") from None
