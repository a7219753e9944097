"""Every section of the settings: the types, defaults and limits of its keys, and what they mean.

Those of broker, coordinator, nodes and overlay have modules of their own beside this one. The commented example file
and ``docs/settings.md`` are made from the sections, so a new setting is a field with a description, and nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tocsin.model.bounds import PARAMETER_BYTES
from tocsin.settings.broker import BrokerSettings
from tocsin.settings.coordinator import CoordinatorSettings
from tocsin.settings.nodes import NodesSettings, WorkerSettings
from tocsin.settings.overlay import OverlaySettings
from tocsin.settings.section import GIB, MIB, Connections, Origins, Seconds, Section, Size, TlsCertificate, TlsKey

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "text", "json"]
KafkaSecurity = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]
KafkaMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class DataSettings(Section, frozen=True, kw_only=True):
    """The data cluster: where it keeps its state, and where it listens."""

    directory: Annotated[
        Path, Meta(description="Where feeds, datasets, results and subscriptions are kept; created when missing.")
    ] = Path("tocsin-data")
    state: Annotated[
        str,
        Meta(
            examples=["", "postgresql://tocsin@db.example.org/tocsin"],
            description="A PostgreSQL database for definitions, subscriptions and tokens; empty for a SQLite file in "
            "the directory.",
        ),
    ] = ""
    takeover_seconds: Annotated[
        Seconds,
        Meta(
            description="With state in a database: one that stands by (`tocsin data --standby`) takes over from a data "
            "cluster that has given no sign of life for so long."
        ),
    ] = 6.0
    host: Annotated[str, Meta(min_length=1, description="The address to listen on; 0.0.0.0 for all of them.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Meta(ge=0, le=65_535, description="The port to listen on; 0 takes any free one.")] = 8800
    tls_certificate: TlsCertificate = ""
    tls_key: TlsKey = ""
    origins: Origins = msgspec.field(default_factory=list)
    connections: Connections = 1000
    max_request_bytes: Annotated[Size, Meta(description="A larger request body is refused with status 413.")] = 8 * MIB


class SparkSettings(Section, frozen=True, kw_only=True):
    """The Spark session that datasets and channels are computed on."""

    master: Annotated[
        str,
        Meta(
            pattern=r"^(local(\[[^\]]+\])?|local-cluster\[[^\]]+\]|yarn|(spark|k8s)://.+)$",
            examples=["local[*]", "local[2]", "spark://host:7077"],
            description="The cluster to run on: a Spark master URL. local[*] uses every core of this machine.",
        ),
    ] = "local[*]"
    driver_memory: Annotated[
        str,
        Meta(
            pattern=r"^[1-9][0-9]*[kmgt]$",
            examples=["512m", "2g"],
            description="Heap of Spark's driver; with a local master, of all of Spark.",
        ),
    ] = "2g"
    shuffle_partitions: Annotated[
        int, Meta(ge=1, le=100_000, description="Partitions of a join or aggregation; a few per core are enough.")
    ] = 4
    extra: Annotated[
        dict[str, str],
        Meta(description='Further Spark configuration, passed on as it is: "spark.sql.ansi.enabled" = "true".'),
    ] = msgspec.field(default_factory=dict)


class FeedsSettings(Section, frozen=True, kw_only=True):
    """The feed logs: where they are, what publishers may send, and how much waits for its dataset."""

    log: Annotated[
        str,
        Meta(
            pattern=r"^(embedded|kafka://[^/]+(/[A-Za-z0-9._-]+)?)$",
            examples=["embedded", "kafka://kafka-1:9092,kafka-2:9092/tocsin"],
            description="Where publications are kept until their dataset has them: in the data directory, or in Kafka, "
            "a topic for each feed, whose name begins with what follows the slash.",
        ),
    ] = "embedded"
    kafka_security: Annotated[
        KafkaSecurity,
        Meta(description="How connections to Kafka are secured, in its own words: ssl is TLS, sasl a password."),
    ] = "plaintext"
    kafka_ca: Annotated[
        str,
        Meta(
            examples=["", "/etc/tocsin/kafka-ca.pem"],
            description="With TLS: the file of the authority that signed Kafka's certificates, under the same path "
            "wherever Spark reads from it; empty for those that the system trusts.",
        ),
    ] = ""
    kafka_mechanism: Annotated[KafkaMechanism, Meta(description="With SASL: by which mechanism.")] = "SCRAM-SHA-512"
    kafka_user: Annotated[str, Meta(description="With SASL: the user.")] = ""
    kafka_password: Annotated[str, Meta(description="With SASL: the password.")] = ""
    slices: Annotated[
        int, Meta(ge=1, le=4096, description="Slices of a feed whose CREATE FEED does not say INTO n SLICES.")
    ] = 16
    segment_bytes: Annotated[Size, Meta(description="A slice's log starts a new file at this size.")] = 64 * MIB
    max_backlog_bytes: Annotated[
        Size,
        Meta(description="With more than this not yet in its dataset, a feed answers publishers with status 429."),
    ] = GIB
    max_batch_bytes: Annotated[Size, Meta(description="Most of a feed's log that one micro-batch takes.")] = 16 * MIB
    streaming: Annotated[
        bool,
        Meta(
            description=(
                "Whether logs are read by Structured Streaming queries instead of as soon as something is published."
            )
        ),
    ] = False
    group_commit_ms: Annotated[
        float,
        Meta(
            ge=0, le=1000, description="How long, in milliseconds, a publication waits for others to share its fsync."
        ),
    ] = 2.0
    append_commit_ms: Annotated[
        float,
        Meta(
            ge=0,
            le=60_000,
            description=(
                "Shortest time, in milliseconds, between two commits to an append dataset. Less takes processor time "
                "from the channels that wait for them, so that results may even come later."
            ),
        ),
    ] = 100.0
    keyed_commit_ms: Annotated[
        float,
        Meta(
            ge=0,
            le=60_000,
            description=(
                "Shortest time, in milliseconds, between two commits to a keyed dataset. Each rewrites the records' "
                "file, so that fewer and larger ones are cheaper."
            ),
        ),
    ] = 500.0
    retry_after_seconds: Annotated[Seconds, Meta(description="The Retry-After of a 429 answer.")] = 1.0
    functions: Annotated[
        list[str],
        Meta(
            examples=["sensors.cleaning"],
            description="The Python modules whose functions CREATE FEED may name, after USING and PROCESSED BY. They "
            "are code that runs with all rights of the data cluster, and of those workers that name them in their own "
            "settings.",
        ),
    ] = msgspec.field(default_factory=list)
    function_seconds: Annotated[
        Seconds,
        Meta(
            description="A function after PROCESSED BY that takes longer for up to 1,000 records is ended; which of "
            "them are at fault is found out in about six times as long, and these become dead letters."
        ),
    ] = 10.0
    slicing_seconds: Annotated[
        Seconds,
        Meta(
            description="A function after USING that takes longer for up to 1,000 records is ended; which of them are "
            "at fault is found out in about six times as long, while who publishes to its feed waits."
        ),
    ] = 2.0
    function_bytes: Annotated[
        int,
        Meta(
            ge=256 * MIB,
            description="Memory that the process of a function of one's own may have, Python and Arrow included.",
        ),
    ] = 2 * GIB


class ChannelsSettings(Section, frozen=True, kw_only=True):
    """How channels are executed."""

    workers: Annotated[int, Meta(ge=1, le=256, description="Executions of different channels at the same time.")] = 2
    arriving_bytes: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "Of a micro-batch that brings at most so many bytes, continuous channels whose body allows it are "
                "matched with the records while these are being stored; of a larger one, or with 0, after that."
            ),
        ),
    ] = 4 * MIB
    slow_seconds: Annotated[
        Seconds,
        Meta(
            description=(
                "An execution that takes longer is slow: slow ones run beside the others, half as many at a time, and "
                "keep only each other waiting."
            )
        ),
    ] = 3.0
    execution_seconds: Annotated[
        Seconds,
        Meta(
            description=(
                "An execution that takes longer is cancelled, reported, and tried again after at least as long; ten "
                "times as long while it is found out with which subscriptions or records it fails."
            )
        ),
    ] = 120.0
    retry_seconds: Annotated[
        Seconds, Meta(description="First wait before a failed execution is tried again; doubled at each failure.")
    ] = 5.0
    max_retry_seconds: Annotated[
        Seconds, Meta(description="Longest wait before a failed execution is tried again.")
    ] = 60.0
    bisection_queries: Annotated[
        int,
        Meta(
            ge=0,
            le=10_000,
            description=(
                "Queries to find out which subscriptions or records make an execution fail, so that the others are "
                "served; if they do not suffice, it is tried again as a whole."
            ),
        ),
    ] = 200
    trial_queries: Annotated[
        int,
        Meta(
            ge=0,
            le=10_000,
            description=(
                "Queries of one execution to find out who fails of those that are tried by themselves first, since "
                "they have subscribed while others failed, or have failed before; if they do not suffice, the rest of "
                "these does without the execution."
            ),
        ),
    ] = 16
    set_aside_seconds: Annotated[
        Seconds,
        Meta(description="How long a subscription with which its channel cannot be executed is left out of it."),
    ] = 3600.0
    parameter_bytes: Annotated[
        Size, Meta(description="What the parameters of one subscription may have at most, as JSON.")
    ] = PARAMETER_BYTES


class ResultsSettings(Section, frozen=True, kw_only=True):
    """What executions found, until brokers have pulled it."""

    retention_seconds: Annotated[
        Seconds, Meta(description="How long results can be pulled; then they are removed.")
    ] = 3600.0
    cache_bytes: Annotated[int, Meta(ge=0, description="Newest results kept in memory for brokers; 0 keeps none.")] = (
        64 * MIB
    )


class LakeSettings(Section, frozen=True, kw_only=True):
    """The Delta tables: where they are, and their upkeep."""

    location: Annotated[
        str,
        Meta(
            pattern=r"^(s3://[a-z0-9][a-z0-9.-]+(/[A-Za-z0-9._/-]*)?|(?![A-Za-z0-9]+://).*)$",
            examples=["", "/srv/lake", "s3://bucket/prefix"],
            description="Where datasets, results and dead letters are kept: a directory, which may be a shared one, or "
            "a part of an S3 bucket; empty for the data directory.",
        ),
    ] = ""
    endpoint: Annotated[
        str,
        Meta(
            pattern=r"^(https?://[^\s/]+/?)?$",
            examples=["", "https://s3.example.org"],
            description="The S3 server of lake.location; empty for AWS_ENDPOINT_URL, or AWS itself. Credentials are "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or those of the machine's role.",
        ),
    ] = ""
    region: Annotated[str, Meta(description="The region of the S3 bucket; empty for AWS_REGION, or us-east-1.")] = ""
    maintenance_seconds: Annotated[Seconds, Meta(description="How often tables are looked after.")] = 60.0
    vacuum_after_seconds: Annotated[
        Seconds, Meta(description="How long a file no longer in a table stays on disk, for those still reading it.")
    ] = 120.0
    compact_files: Annotated[
        int, Meta(ge=2, le=1_000_000, description="A table with this many small files is compacted.")
    ] = 64
    checkpoint_commits: Annotated[
        int, Meta(ge=1, le=1_000_000, description="After this many commits a table's log is shortened.")
    ] = 100
    recent_bytes: Annotated[
        Size,
        Meta(description="How much of what a dataset got last stays in memory, for channels that ask what is new."),
    ] = 4 * MIB
    sync: Annotated[
        bool,
        Meta(
            description="Whether a commit counts only once the disk has it. Without, a power cut may undo what brokers "
            "were told: for throw-away data and measurements."
        ),
    ] = True


class RatesSettings(Section, frozen=True, kw_only=True):
    """The measured data rate of each subscription."""

    window_seconds: Annotated[
        Seconds, Meta(description="The span of the moving average. Brokers should have the same broker.rate_seconds.")
    ] = 60.0


class TlsSettings(Section, frozen=True, kw_only=True):
    """Whom this program trusts when it calls others by https or wss: a broker, or a command of a person."""

    ca: Annotated[
        str,
        Meta(
            examples=["", "/etc/tocsin/ca.pem"],
            description="The file of a private authority's certificates, trusted beside the system's.",
        ),
    ] = ""


class LogSettings(Section, frozen=True, kw_only=True):
    """What is logged, and how it looks."""

    level: Annotated[LogLevel, Meta(description="The least severe messages that are logged.")] = "info"
    format: Annotated[LogFormat, Meta(description="auto is text on a terminal, else json: one object per line.")] = (
        "auto"
    )


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings. ``Settings()`` has every default; ``tocsin.settings.load`` is how a running system gets its own."""

    data: DataSettings = DataSettings()
    spark: SparkSettings = SparkSettings()
    feeds: FeedsSettings = FeedsSettings()
    channels: ChannelsSettings = ChannelsSettings()
    results: ResultsSettings = ResultsSettings()
    lake: LakeSettings = LakeSettings()
    rates: RatesSettings = RatesSettings()
    nodes: NodesSettings = NodesSettings()
    worker: WorkerSettings = WorkerSettings()
    coordinator: CoordinatorSettings = CoordinatorSettings()
    broker: BrokerSettings = BrokerSettings()
    overlay: OverlaySettings = OverlaySettings()
    tls: TlsSettings = TlsSettings()
    log: LogSettings = LogSettings()
