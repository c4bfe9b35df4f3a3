"""File systems by URL that are no object stores: hdfs and viewfs by `hdfs_native`, which needs no Java; any other that fsspec knows.

Options have Hadoop's names: `dfs.*` and `hadoop.*` for hdfs, which override the files in HADOOP_CONF_DIR, and `fs.SCHEME.NAME` for
fsspec's option NAME. Kerberos' tickets, delegation tokens and HADOOP_USER_NAME are found where Hadoop's own client finds them.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from horolog.pipeline.stores.object_stores import Place
from horolog.stores.faults import StoreError

HDFS = ("hdfs", "viewfs")
HADOOP_NAMES = (
    "fs.defaultFS", "dfs.nameservices", "dfs.ha.namenodes.", "dfs.namenode.rpc-address.", "dfs.client.failover.proxy.provider.",
    "dfs.client.use.datanode.hostname", "dfs.data.transfer.protection", "hadoop.security.authentication", "fs.viewfs.mounttable.",
)  # fmt: skip
"""What a session's configuration says of hdfs, and its client reads: names, or what they begin with."""

_ICEBERG_IO = "horolog.pipeline.stores.hdfs_io.HdfsIO"
_DEFAULT_PORT = 8020
_ATTEMPTS = {"dfs.client.failover.max.attempts": "5"}  # some 15 seconds; Hadoop's 15 are minutes
_RPC_ERROR = re.compile(r'\w+\((?:"[\w.$]*", )?"(.*?)(?:\\n|"\)|$)')


@dataclass(frozen=True, slots=True)
class FileSystemPlace(Place):
    """A folder of a file system; the bucket is the host that knows it. Settings have their full names, in small letters."""

    @classmethod
    def of(
        cls,
        url: str,
        options: Mapping[str, str] | None = None,
        environment: Mapping[str, str] = os.environ,  # noqa: ARG003 - which the clients ask themselves
    ) -> "FileSystemPlace":
        scheme, host, path, query, _ = urlsplit(url)
        given = {name.lower(): value for name, value in (options or {}).items()}
        _client(scheme, url)
        if scheme in HDFS and not host:
            default = urlsplit(given.get("fs.defaultfs", ""))
            host = default.netloc if default.scheme == scheme else ""
            url = urlunsplit((scheme, host, path, query, ""))
        if query or (scheme in HDFS and not host):
            raise StoreError(f"{url}: expected {scheme}://HOST/FOLDER")
        own = ("dfs.", "hadoop.", "fs.viewfs.") if scheme in HDFS else (f"fs.{scheme}.",)
        settings = {name: value for name, value in given.items() if name.startswith(own) and value}
        nodes = {name: value.lower() for name, value in settings.items() if name.startswith("dfs.ha.namenodes.")}
        settings |= nodes  # which are parts of other names
        return cls(url.rstrip("/"), host, path.strip("/"), tuple(sorted(settings.items())))

    @property
    def root(self) -> str:
        return f"{self.scheme}://{self.bucket}"

    def as_options(self) -> dict[str, str]:
        return dict(self.settings)

    def as_delta_url(self) -> str:
        """With the port that `open` has found: to deltalake a host without one is a name service."""
        port = None if self.scheme != "hdfs" else self.open().port
        return (
            self.canonical()
            if port is None
            else f"{self.scheme}://{self.bucket.partition(':')[0]}:{port}/{self.folder}"
        )

    def as_delta_options(self, environment: Mapping[str, str] = os.environ) -> dict[str, str]:  # noqa: ARG002
        return self._for_tables("Delta")

    def as_iceberg_properties(self) -> dict[str, str]:
        return {"py-io-impl": _ICEBERG_IO, **self._for_tables("Iceberg")}

    def _for_tables(self, kind: str) -> dict[str, str]:
        if self.scheme not in HDFS:
            raise StoreError(
                f"{self.url}: {kind} tables can be kept in folders, object stores and HDFS; this file system takes only Parquet"
            )
        return _ATTEMPTS | dict(self.settings)

    def open(self) -> Any:
        """The file system, by fsspec's interface."""
        client = _client(self.scheme, self.url)
        with self.told():
            where = client._get_kwargs_from_urls(self.url)  # noqa: SLF001 - what fsspec itself opens a URL by
            if self.scheme not in HDFS:
                prefix = f"fs.{self.scheme}."
                return client(**where, **{name.removeprefix(prefix): value for name, value in self.settings})
            if "SPARK_USER" in os.environ:  # as whom executors work
                os.environ.setdefault("HADOOP_USER_NAME", os.environ["SPARK_USER"])
            # fsspec empties its cache in a forked process, as Spark's start is, and a client that is destroyed there waits for ever.
            where |= {"skip_instance_cache": True}
            settings = _ATTEMPTS | dict(self.settings)
            try:
                return client(**where, **settings)
            except RuntimeError:  # not a name service, so it is a host
                if self.scheme != "hdfs" or where["port"] is not None:
                    raise
                return client(**where | {"port": _DEFAULT_PORT}, **settings)

    def path(self, name: str) -> str:
        """What the file system calls something in this folder."""
        stripped: str = _client(self.scheme, self.url)._strip_protocol(f"{self.url}/{name}".rstrip("/"))  # noqa: SLF001
        return stripped

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raises the file system's errors as StoreError, except FileNotFoundError and FileExistsError."""
        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(self.url) from None
        except (FileExistsError, StoreError):
            raise
        except Exception as error:  # noqa: BLE001 - fsspec's clients have faults of all kinds
            raise self.fault(error) from None

    def _sentence(self, error: Exception) -> str:
        text = str(error)
        found = _RPC_ERROR.match(text)
        said = (found[1] if found else text.partition("\n")[0])[:200] or type(error).__name__
        if isinstance(error, PermissionError) or "AccessControlException" in text:
            return f"access denied ({said})"
        if isinstance(error, ConnectionError) or "refused" in said:
            return f"{self.bucket or self.scheme} cannot be reached ({said})"
        return re.sub(r"\?\S*", "", said)


def _client(scheme: str, url: str) -> Any:
    """The class that fsspec has for a scheme; StoreError if there is none, or its package is not installed."""
    if scheme in HDFS:
        from hdfs_native.fsspec import HdfsFileSystem, ViewfsFileSystem

        return HdfsFileSystem if scheme == "hdfs" else ViewfsFileSystem
    from fsspec import get_filesystem_class

    try:
        return get_filesystem_class(scheme)
    except ValueError:
        raise StoreError(f"{url}: neither a store nor fsspec supports {scheme}://") from None
    except ImportError as error:
        raise StoreError(f"{url}: {error}") from None
