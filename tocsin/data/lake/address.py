"""Where a lake is, for processes that are told of it: no secret is part of that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from tocsin.errors import SettingsError
from tocsin.settings import LakeSettings

if TYPE_CHECKING:
    from tocsin.data.fence import Fence
    from tocsin.data.lake.folder import Folder

S3: Final = "s3://"


class LakeAddress(msgspec.Struct, frozen=True):
    """A folder by its address. Goes over the wire as it is.

    Args:
        url: a directory's path, or ``s3://bucket/prefix``.
        endpoint, region: of the bucket; what is empty is found out by whoever opens it.
    """

    url: str
    endpoint: str = ""
    region: str = ""

    @property
    def is_bucket(self) -> bool:
        """Whether it is in S3."""
        return self.url.startswith(S3)

    def seen_with(self, settings: LakeSettings) -> LakeAddress:
        """The same for a process with settings and an environment of its own, which go before what it was told."""
        if not self.is_bucket:
            return self
        _require_client()
        from tocsin.data.lake.bucket import BucketAddress

        name = self.url.removeprefix(S3).partition("/")[0]
        address = BucketAddress.read(name, settings, endpoint=self.endpoint, region=self.region)
        return LakeAddress(self.url, address.endpoint, address.region)

    def open(self, fence: Fence | None = None) -> Folder:
        """The folder, with the credentials of this process."""
        if not self.is_bucket:
            from tocsin.data.lake.directory import as_folder

            return as_folder(Path(self.url))
        _require_client()
        from tocsin.data.lake.bucket import Bucket, BucketAddress
        from tocsin.data.lake.s3 import S3Folder

        name, _, prefix = self.url.removeprefix(S3).partition("/")
        settings = LakeSettings(endpoint=self.endpoint, region=self.region)
        return S3Folder(Bucket(BucketAddress.read(name, settings)), prefix, fence)


def _require_client() -> None:
    try:
        import obstore  # noqa: F401
    except ImportError:
        raise SettingsError("a lake in S3 needs its client: pip install 'tocsin[s3]'") from None
