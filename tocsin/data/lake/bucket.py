"""An S3 bucket, and how the four that use it reach it: us, Arrow, the Delta library and Spark.

The settings and AWS's own environment variables say how; without them each looks where AWS's tools do, such as the
role of the machine.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

import pyspark
from obstore.store import S3Store
from pyarrow import fs

from tocsin.settings import LakeSettings

if TYPE_CHECKING:
    from obstore.store import S3Config

_REGION: Final = "us-east-1"
_REQUEST: Final = timedelta(seconds=30)
_CONNECT: Final = timedelta(seconds=5)
_RETRY: Final = timedelta(seconds=20)


@dataclass(frozen=True)
class BucketAddress:
    """Where a bucket is and who asks; what is empty is for the libraries to find out."""

    name: str
    endpoint: str = ""
    region: str = _REGION
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)

    @classmethod
    def read(
        cls,
        name: str,
        settings: LakeSettings,
        variables: Mapping[str, str] = os.environ,
        endpoint: str = "",
        region: str = "",
    ) -> Self:
        """The address that the settings and the environment give, or where they do not, the one that is given."""

        def first(*names: str) -> str:
            return next((found for name in names if (found := variables.get(name, ""))), "")

        return cls(
            name,
            settings.endpoint or first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") or endpoint,
            settings.region or first("AWS_REGION", "AWS_DEFAULT_REGION") or region or _REGION,
            first("AWS_ACCESS_KEY_ID"),
            first("AWS_SECRET_ACCESS_KEY"),
            first("AWS_SESSION_TOKEN"),
        )

    @property
    def plain(self) -> bool:
        """Whether it is spoken to without TLS."""
        return self.endpoint.startswith("http://")


class Bucket:
    """A bucket, with connections that each process makes for itself. ``ending`` is set when this one is to end.

    Whoever it is sent to, such as Spark's executors, asks with the keys of an environment of its own: no secret goes
    along.
    """

    def __init__(self, address: BucketAddress) -> None:
        self.address = address
        self.ending = threading.Event()

    def __reduce__(self) -> tuple[Callable[[str, str, str], Bucket], tuple[str, str, str]]:
        return _open, (self.address.name, self.address.endpoint, self.address.region)

    @property
    def name(self) -> str:
        return self.address.name

    @cached_property
    def store(self) -> S3Store:
        """For calls that may be repeated: they are, for a while, if no answer comes."""
        return self._store(10)

    @cached_property
    def once(self) -> S3Store:
        """For calls of which each attempt's outcome matters."""
        return self._store(0)

    @cached_property
    def arrow(self) -> fs.S3FileSystem:
        """For Parquet files."""
        address, target = self.address, urlsplit(self.address.endpoint)
        keys = {"access_key": address.access_key, "secret_key": address.secret_key} if address.access_key else {}
        return fs.S3FileSystem(
            **keys,
            session_token=(address.session_token or None) if keys else None,
            endpoint_override=target.netloc + target.path.rstrip("/") or None,
            scheme=target.scheme or "https",
            region=address.region,
            request_timeout=_REQUEST.total_seconds(),
            connect_timeout=_CONNECT.total_seconds(),
            # What is short is one request then, and not three.
            allow_delayed_open=True,
        )

    @property
    def delta(self) -> dict[str, str]:
        """Options of the Delta library."""
        address = self.address
        options = {
            "AWS_ENDPOINT_URL": address.endpoint,
            "AWS_ALLOW_HTTP": "true" if address.plain else "",
            "AWS_REGION": address.region,
            "AWS_ACCESS_KEY_ID": address.access_key,
            "AWS_SECRET_ACCESS_KEY": address.secret_key,
            "AWS_SESSION_TOKEN": address.session_token,
        }
        return {name: value for name, value in options.items() if value}

    @property
    def spark(self) -> dict[str, str]:
        """Configuration of Spark, whose connector for S3 is that of its Hadoop.

        Keys are not part of it, as it ends up in a command line: Spark finds them in the environment, as we do.
        """
        address = self.address
        options = {
            "endpoint": address.endpoint,
            "path.style.access": "true" if address.endpoint else "",
            "endpoint.region": address.region,
        }
        configured = {f"spark.hadoop.fs.s3a.{name}": value for name, value in options.items() if value}
        return {"spark.jars.packages": f"org.apache.hadoop:hadoop-aws:{_hadoop_version()}", **configured}

    def _store(self, retries: int) -> S3Store:
        address = self.address
        config: S3Config = {"region": address.region}
        if address.endpoint:
            config["endpoint"] = address.endpoint
        if address.access_key:
            config.update({"access_key_id": address.access_key, "secret_access_key": address.secret_key})
        if address.session_token:
            config["session_token"] = address.session_token
        return S3Store(
            address.name,
            config=config,
            client_options={"allow_http": address.plain, "timeout": _REQUEST, "connect_timeout": _CONNECT},
            retry_config={"max_retries": retries, "retry_timeout": _RETRY},
        )


def _open(name: str, endpoint: str, region: str) -> Bucket:
    """The same bucket in another process."""
    return Bucket(BucketAddress.read(name, LakeSettings(endpoint=endpoint, region=region)))


def _hadoop_version() -> str:
    """The version of the Hadoop that Spark comes with."""
    jars = Path(pyspark.__file__).with_name("jars")
    found = next(jars.glob("hadoop-client-api-*.jar"))
    return found.stem.removeprefix("hadoop-client-api-")
