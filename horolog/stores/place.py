"""A place in an object store: its URL, what opens it, and its client's errors as sentences.

Credentials come from the environment, a profile, or the machine itself. They are never shown.
"""

import datetime as dt
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from horolog.stores.credentials import CREDENTIALS, s3_settings
from horolog.stores.faults import ABSENT, StoreError, StoreRefusal, code_of, is_refusal, sentence

S3 = ("s3", "s3a", "s3n")
GOOGLE = ("gs", "gcs")
AZURE = ("abfs", "abfss", "az", "azure", "adl")
SCHEMES = (*S3, *GOOGLE, *AZURE)
FILE = "file"

CONNECT_SECONDS = 5
REQUEST_SECONDS = 60
RETRY_SECONDS = 20
RETRIES = 5


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A bucket, or container, and a folder in it; `settings` open it. Of a `file:` URL the folder itself is the bucket."""

    url: str
    bucket: str
    folder: str
    settings: tuple[tuple[str, str], ...] = field(repr=False)

    @classmethod
    def from_environment(cls, url: str, endpoint: str = "", environment: Mapping[str, str] = os.environ) -> Self:
        """The place of a URL, with the environment's credentials; StoreError if the URL names no store."""
        scheme, bucket, path, query, fragment = urlsplit(url)
        if scheme == FILE and path.strip("/") and not (bucket or query or fragment):
            return cls(url.rstrip("/"), unquote(path).rstrip("/"), "", ())
        if scheme not in SCHEMES or not bucket or query or fragment:
            raise StoreError(f"{url}: expected s3://BUCKET/FOLDER, gs://, az:// or file:///FOLDER")
        settings: dict[str, str] = {}
        if scheme in S3:
            settings = s3_settings({"endpoint": endpoint}, environment) | {"virtual_hosted_style_request": "false"}
        elif endpoint:
            settings = {"endpoint": endpoint}
        return cls(url.rstrip("/"), bucket, path.strip("/"), as_settings(settings))

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0]

    def __truediv__(self, name: str) -> Self:
        folder = f"{self.folder}/{name}" if self.folder else name
        return replace(self, url=f"{self.url}/{name}", folder=folder)

    def key(self, name: str) -> str:
        """The key in the bucket of something in this folder."""
        return f"{self.folder}/{name}".strip("/")

    def canonical(self) -> str:
        """The same for every spelling of the URL; clients of object stores know it."""
        return f"{self.root}/{self.folder}"

    @property
    def root(self) -> str:
        """Of all folders there."""
        scheme = "s3" if self.scheme in S3 else "gs" if self.scheme in GOOGLE else self.scheme
        return f"{scheme}://{self.bucket}"

    @property
    def where(self) -> str:
        """The host that is asked, as far as the settings name one."""
        return dict(self.settings).get("endpoint", "the store")

    def open(self) -> Any:
        """The bucket, by obstore; nothing is asked of it yet."""
        return self.client(RETRIES, REQUEST_SECONDS)

    def client(self, retries: int, request_seconds: float) -> Any:
        """A client of obstore that sends a failed request again so many times."""
        from obstore.exceptions import BaseError
        from obstore.store import LocalStore, from_url

        settings = dict(self.settings)
        is_plain = settings.get("endpoint", "").startswith("http://")
        if self.scheme in S3 and not is_plain:  # TLS protects the body, and its hash is three quarters of a PUT
            settings.setdefault("unsigned_payload", "true")
        more: dict[str, Any] = {}
        if "access_key_id" in settings:  # passed explicitly, so that the environment's are not mixed with them
            known = {name: settings.pop(name, None) for name in CREDENTIALS}
            known["token"] = known.pop("session_token")
            more["credential_provider"] = lambda: {**known, "expires_at": None}
        try:
            if self.scheme == FILE:
                return LocalStore(self.bucket, mkdir=True)
            return from_url(
                f"{self.root}/",
                config=settings,
                client_options={
                    "allow_http": is_plain,
                    "timeout": dt.timedelta(seconds=request_seconds),
                    "connect_timeout": dt.timedelta(seconds=min(CONNECT_SECONDS, request_seconds)),
                },
                retry_config={"max_retries": retries, "retry_timeout": dt.timedelta(seconds=RETRY_SECONDS)},
                **more,
            )
        except (BaseError, ValueError, OSError) as error:
            raise self.fault(error) from None

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raises the store's errors as StoreError, except FileNotFoundError for a missing object."""
        from obstore.exceptions import BaseError

        try:
            yield
        except FileNotFoundError as error:
            code = code_of(error)
            if code is None or code in ABSENT:
                raise FileNotFoundError(self.url) from None
            raise self.fault(error) from None
        except (BaseError, OSError, NotImplementedError) as error:
            raise self.fault(error) from None

    def fault(self, error: Exception) -> StoreError:
        """A client's exception, in one sentence."""
        kind = StoreRefusal if is_refusal(error) else StoreError
        return kind(f"{self.url}: {self._sentence(error)}")

    def _sentence(self, error: Exception) -> str:
        return sentence(error, self.bucket, self.where)


def as_settings(found: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Settings without those that are empty, in the order that makes equal places equal."""
    return tuple(sorted((name, value) for name, value in found.items() if value))
