"""The infrastructure that a network on hosts runs on: a Spark cluster, and PostgreSQL, Kafka and S3 where they are
installed. Each is small, as it shares its machine with all the others.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tocsin.local.hosts import NETWORK, Hosts
from tocsin.local.kafka import KAFKA_JARS, connector_jars, has_kafka, new_cluster_id, properties
from tocsin.local.part import Part, StartStep
from tocsin.local.s3 import BUCKET, client_variables, has_s3, make_directories, s3_command, s3_jars, s3_keys

POSTGRESQL: Final = "postgresql"
KAFKA: Final = "kafka"
S3: Final = "s3"
MASTER: Final = "spark-master"
# In a life of minutes the optimizing compiler takes more than it gives.
JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Several Java programs start at the same time, perhaps on a busy machine.
_READY_SECONDS: Final = 300.0
# PostgreSQL refuses to run as root; Debian's package makes this user.
_USER: Final = "postgres"
_PORTS: Final = {POSTGRESQL: 5432, KAFKA: 9092, S3: 9000, MASTER: 7077}
# It can be reached on these hosts only.
_KEY, _SECRET = "tocsin", "of-these-hosts-only"
_WORKER_PORT: Final = 7078
_CONTROLLER_PORT: Final = 9093
_START_POSTGRESQL: Final = """
[ -e "$0/PG_VERSION" ] || { "$1/initdb" -D "$0" -U "$2" -A trust -E UTF8 --no-sync &&
echo "host all all $3 trust" >>"$0/pg_hba.conf"; } || exit 1
exec "$1/postgres" -D "$0" -c "listen_addresses=$4" -c "unix_socket_directories=$0"
"""
_START_KAFKA: Final = """
java -Xmx256m -cp "$0/*" kafka.tools.StorageTool format --ignore-formatted -t "$1" -c "$2" &&
exec java -Xmx384m -cp "$0/*" kafka.Kafka "$2"
"""


def postgresql_programs() -> Path | None:
    """Where PostgreSQL's programs are; None where they, or what speaks to it, are not installed."""
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin")), Path(shutil.which("postgres") or "").parent]
    found = [place for place in places if (place / "postgres").exists() and (place / "initdb").exists()]
    return found[0] if found and find_spec("psycopg") else None


def infrastructure_hosts(workers: int, s3: bool = False) -> list[str]:
    """The hosts that it needs, for what is installed; each bears the name of its server. S3 is for who wants it."""
    installed = ((POSTGRESQL, postgresql_programs()), (KAFKA, has_kafka()), (S3, s3 and has_s3()))
    others = [name for name, there in installed if there]
    return [*others, MASTER, *spark_workers(workers)]


def spark_workers(workers: int) -> list[str]:
    """The names of Spark's workers."""
    return [f"spark-{number}" for number in range(1, workers + 1)]


@dataclass(frozen=True)
class Infrastructure:
    """Its servers as parts, each on the host of its name. Made by :func:`infrastructure`.

    Args:
        directory: where Spark, Kafka and the logs are.
        database: the directory of PostgreSQL's files, which belongs to the user it runs as.
    """

    hosts: Hosts
    directory: Path
    database: Path
    workers: int

    @property
    def names(self) -> list[str]:
        """Those that have a host."""
        every = (POSTGRESQL, KAFKA, S3, MASTER, *spark_workers(self.workers))
        return [name for name in every if name in self.hosts.names]

    @property
    def store(self) -> str:
        """The URL of the database; empty where there is none."""
        return f"postgresql://{_USER}@{self._address(POSTGRESQL)}/{_USER}" if POSTGRESQL in self.names else ""

    @property
    def log(self) -> str:
        """As ``feeds.log`` names it."""
        return f"kafka://{self._address(KAFKA)}/tocsin" if KAFKA in self.names else "embedded"

    @property
    def lake(self) -> str:
        """As ``lake.location`` names it; empty where it is in the data directory."""
        return f"s3://{BUCKET}/tocsin" if S3 in self.names else ""

    @property
    def variables(self) -> dict[str, str]:
        """What whoever uses the lake has in its environment."""
        return client_variables(f"http://{self._address(S3)}", _KEY, _SECRET) if S3 in self.names else {}

    @property
    def spark(self) -> str:
        """As ``spark.master`` names it."""
        return f"spark://{self._address(MASTER)}"

    @property
    def connector(self) -> dict[str, str]:
        """What Spark must be told to read the log and the lake."""
        known = {KAFKA: connector_jars, S3: s3_jars}
        jars = [find() for name, find in known.items() if name in self.names]
        return {"spark.jars": ",".join(jars)} if jars else {}

    @property
    def token(self) -> str:
        """None is needed."""
        return ""

    @property
    def groups(self) -> list[list[Part]]:
        """Spark's master outlives its workers."""
        makers = {POSTGRESQL: self._postgresql, KAFKA: self._kafka, S3: self._s3, MASTER: self._master}
        return [
            [make() for name, make in makers.items() if name in self.names],
            [self._worker(name) for name in spark_workers(self.workers)],
        ]

    @property
    def steps(self) -> list[StartStep]:
        """Everything at once: most of it is Java, which takes its time."""
        cluster = f"a Spark cluster with {self.workers} workers"
        every = {POSTGRESQL: "PostgreSQL", KAFKA: "Kafka", S3: "S3", MASTER: cluster}
        titles = {name: title for name, title in every.items() if name in self.names}
        *others, last = titles.values()
        sentence = f"Starting {', '.join(others)} and {last}" if others else f"Starting {last}"
        workers = spark_workers(self.workers)
        return [StartStep(sentence, [*titles, *workers], [*titles, *workers])]

    @property
    def parting(self) -> str:
        """What is said while all are stopped."""
        return "Stopping what they ran on"

    def _postgresql(self) -> Part:
        files, address = str(self.database), self.hosts.address(POSTGRESQL)
        # It is bound to this process once more, since who becomes another user is bound no longer.
        user = ("setpriv", "--pdeathsig", "KILL", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups")
        start = ("sh", "-c", _START_POSTGRESQL, files, str(postgresql_programs()), _USER, str(NETWORK), address)
        return self._part(POSTGRESQL, (*user, *start), _PORTS[POSTGRESQL])

    def _kafka(self) -> Part:
        jars, settings = str(KAFKA_JARS / "server"), str(self._kafka_properties)
        start = ("sh", "-c", _START_KAFKA, jars, new_cluster_id(), settings)
        return self._part(KAFKA, start, _PORTS[KAFKA])

    def _s3(self) -> Part:
        return self._part(S3, s3_command(self._address(S3), self.directory / S3), _PORTS[S3], **s3_keys(_KEY, _SECRET))

    @property
    def _kafka_properties(self) -> Path:
        return self.directory / "kafka.properties"

    def write_settings(self) -> None:
        """Writes the files that servers read when they start."""
        if S3 in self.names:
            make_directories(self.directory / S3)
        if KAFKA not in self.names:
            return
        controller = f"{self.hosts.address(KAFKA)}:{_CONTROLLER_PORT}"
        text = properties(self._address(KAFKA), controller, self.directory / KAFKA)
        self._kafka_properties.write_text(text, encoding="utf-8")

    def _master(self) -> Part:
        host, _, port = self._address(MASTER).partition(":")
        return self._spark(MASTER, "master.Master", "--host", host, "--port", port, port=int(port))

    def _worker(self, name: str) -> Part:
        where = ("--host", self.hosts.address(name), "--port", str(_WORKER_PORT))
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.directory / "spark" / name))
        return self._spark(name, "worker.Worker", *where, *size, self.spark, port=_WORKER_PORT)

    def _spark(self, name: str, program: str, *arguments: str, port: int) -> Part:
        import pyspark

        home = Path(pyspark.__file__).parent
        start = (str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", *arguments)
        variables = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": self.hosts.address(name), "SPARK_DAEMON_MEMORY": "192m"}
        # Executors are started by workers, and reach the lake with what these have in their environment.
        return self._part(name, start, port, **variables, **self.variables)

    def _part(self, name: str, start: tuple[str, ...], port: int, **environment: str) -> Part:
        url, log = f"tcp://{self.hosts.address(name)}:{port}", self.directory / "log" / f"{name}.log"
        variables = {"JAVA_TOOL_OPTIONS": JAVA_OPTIONS, **environment}
        program = (*self.hosts.on(name), *start)
        return Part(name, (), url, log, program=program, environment=variables, ready_seconds=_READY_SECONDS)

    def _address(self, name: str) -> str:
        return f"{self.hosts.address(name)}:{_PORTS[name]}"


@contextmanager
def infrastructure(hosts: Hosts, directory: Path, workers: int) -> Iterator[Infrastructure]:
    """The servers that have a host, not started yet; what the database kept is gone in the end."""
    # Not in the directory, which may be closed to the user that PostgreSQL runs as.
    with tempfile.TemporaryDirectory(prefix="tocsin-postgresql-", ignore_cleanup_errors=True) as database:
        if POSTGRESQL in hosts.names:
            shutil.chown(database, _USER, _USER)
        made = Infrastructure(hosts, directory, Path(database), workers)
        made.write_settings()
        yield made
