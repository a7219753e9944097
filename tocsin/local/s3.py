"""An S3 server for this machine: versitygw, which ``scripts/ensure-s3`` has built, with Spark's connector beside it."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final

S3_PROGRAM: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tocsin" / "s3"
BUCKET: Final = "lake"


def has_s3() -> bool:
    """Whether it, Spark's connector and what speaks to it are there."""
    built = (S3_PROGRAM / "versitygw").exists() and (S3_PROGRAM / "connector").is_dir()
    return built and bool(find_spec("obstore"))


def s3_jars() -> str:
    """What Spark needs to read from S3, as its setting ``spark.jars`` wants it."""
    return ",".join(str(jar) for jar in sorted((S3_PROGRAM / "connector").glob("*.jar")))


def make_directories(directory: Path) -> None:
    """Makes what the server needs below a directory: a bucket, and a place for what objects have beside their bytes."""
    (directory / "root" / BUCKET).mkdir(parents=True)
    (directory / "metadata").mkdir()


def s3_command(address: str, directory: Path) -> tuple[str, ...]:
    """What runs it, on ``host:port``."""
    place = ("posix", "--sidecar", str(directory / "metadata"), str(directory / "root"))
    return (str(S3_PROGRAM / "versitygw"), "--quiet", "--port", address, *place)


def s3_keys(key: str, secret: str) -> dict[str, str]:
    """The server's environment, by which it knows the one user it has."""
    return {"ROOT_ACCESS_KEY": key, "ROOT_SECRET_KEY": secret}


def client_variables(endpoint: str, key: str, secret: str) -> dict[str, str]:
    """The environment of whoever uses it."""
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}
