"""Object stores by URL (s3a, gs, abfss, ...): which one it is, and its credentials under the names that Spark's users know.

For S3 Hadoop's options `fs.s3a.*` override the environment's AWS_*, and these a profile of ~/.aws; with none of them the store's client
asks the machine that it runs on. The driver settles all of that once: tasks get a `Place`. The secrets of a place are never shown,
and a store's error is reported in one sentence of ours, because its own text may contain signatures.
"""

import configparser
import datetime as dt
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S3 = ("s3", "s3a", "s3n")
GOOGLE = ("gs", "gcs")
AZURE = ("abfs", "abfss", "az", "azure", "adl")
SCHEMES = (*S3, *GOOGLE, *AZURE)
OPTIONS = ("fs.", "dfs.", "hadoop.")
"""What options of object stores and file systems begin with."""

DEFAULT_REGION = "us-east-1"
CONNECT_SECONDS = 5
REQUEST_SECONDS = 60
RETRY_SECONDS = 20
RETRIES = 5

_ABSENT = {"NoSuchKey", "BlobNotFound", "PathNotFound", "NoSuchVersion"}
_NO_BUCKET = {"NoSuchBucket", "ContainerNotFound", "FilesystemNotFound"}
_DENIED = {
    "AccessDenied", "AuthenticationFailed", "AuthorizationFailure", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken",
    "SignatureDoesNotMatch", "XAdminUserNotFound",
}  # fmt: skip
_CODE = re.compile(r"<Code>(\w+)</Code>")
_S3_OPTIONS = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint": "endpoint",
    "endpoint.region": "region",
}
_S3_ENVIRONMENT = {
    "access_key_id": ("AWS_ACCESS_KEY_ID",),
    "secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
    "session_token": ("AWS_SESSION_TOKEN",),
    "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
}
_S3_PROFILE = {
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "endpoint": "endpoint_url",
    "region": "region",
}
_ADLS_NAMES = {
    "account_key": "adls.account-key",
    "sas_key": "adls.sas-token",
    "client_id": "adls.client-id",
    "client_secret": "adls.client-secret",
    "tenant_id": "adls.tenant-id",
}
_CREDENTIALS = ("access_key_id", "secret_access_key", "session_token")


class StoreError(Exception):
    """An object store refuses, or does not answer; the message is one sentence without secrets."""


def is_url(text: str) -> bool:
    """Whether that is a URL, and no path of this machine's file system."""
    return "://" in text and not text.startswith("file://")


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket, or container, and a folder in it; what opens it is for the store alone."""

    url: str
    bucket: str
    folder: str
    settings: tuple[tuple[str, str], ...] = field(repr=False)

    @classmethod
    def of(
        cls, url: str, options: Mapping[str, str] | None = None, environment: Mapping[str, str] = os.environ
    ) -> "Place":
        """The place of a URL; StoreError if there is no store for its scheme, or it names no bucket."""
        scheme, bucket, path, query, _ = urlsplit(url)
        if scheme not in SCHEMES:
            from horolog.pipeline.stores.file_systems import FileSystemPlace

            return FileSystemPlace.of(url, options, environment)
        if not bucket or query:
            raise StoreError(f"{url}: {scheme}://BUCKET/FOLDER is expected")
        given = {name.lower(): value for name, value in (options or {}).items()}
        if scheme in S3:
            settings = _s3_settings(bucket, given, environment)
        else:
            settings = _google_settings(given) if scheme in GOOGLE else _azure_settings(bucket, given)
        return cls(url.rstrip("/"), bucket, path.strip("/"), tuple(sorted(settings.items())))

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0]

    def __truediv__(self, name: str) -> "Place":
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
        return f"{self._scheme_of_clients}://{self.bucket}"

    @property
    def _scheme_of_clients(self) -> str:
        return "s3" if self.scheme in S3 else "gs" if self.scheme in GOOGLE else self.scheme

    def as_options(self) -> dict[str, str]:
        """What opens it under Hadoop's names, wherever it came from: for a process with another environment. Only S3 has any."""
        known = dict(self.settings)
        return {f"fs.s3a.{name}": known[own] for name, own in _S3_OPTIONS.items() if own in known}

    def as_delta_url(self) -> str:
        """What `deltalake` calls it."""
        return self.canonical()

    def as_delta_options(self, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
        """What opens it for `deltalake`, which takes from the environment whatever is not set here."""
        limits = {
            "timeout": f"{REQUEST_SECONDS}s",
            "connect_timeout": f"{CONNECT_SECONDS}s",
            "max_retries": str(RETRIES),
            "retry_timeout": f"{RETRY_SECONDS}s",
        }
        settings = dict(self.settings)
        if self.scheme not in S3:
            return limits | settings
        endpoint = settings.pop("endpoint", "")
        found = {"AWS_REGION": DEFAULT_REGION} | {f"AWS_{name.upper()}": value for name, value in settings.items()}
        if endpoint:
            found |= {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": str(endpoint.startswith("http://")).lower()}
        if "access_key_id" in settings and environment.get("AWS_SESSION_TOKEN"):
            found.setdefault("AWS_SESSION_TOKEN", "")  # that one belongs to other keys
        return limits | found

    def as_iceberg_properties(self) -> dict[str, str]:
        """What opens it for `pyiceberg`; Google's store takes the application's default credentials there."""
        settings = dict(self.settings)
        if self.scheme in AZURE:
            account = self.bucket.partition("@")[2].partition(".")[0]
            found = {_ADLS_NAMES[name]: value for name, value in settings.items() if name in _ADLS_NAMES}
            return found | ({"adls.account-name": account} if account else {})
        if self.scheme not in S3:
            return {}
        found = {f"s3.{name.replace('_', '-')}": settings[name] for name in _S3_OPTIONS.values() if name in settings}
        found.setdefault(
            "s3.region", DEFAULT_REGION
        )  # else the client asks Amazon for the bucket's, which may be in another store
        found |= {"s3.connect-timeout": str(CONNECT_SECONDS), "s3.request-timeout": str(REQUEST_SECONDS)}
        found["s3.force-virtual-addressing"] = settings["virtual_hosted_style_request"]
        return found | ({"s3.anonymous": "true"} if "skip_signature" in settings else {})

    def open(self) -> Any:
        """The bucket, by obstore; nothing is asked of it yet."""
        from obstore.exceptions import BaseError
        from obstore.store import from_url

        settings = dict(self.settings)
        more: dict[str, Any] = {}
        if "access_key_id" in settings:  # passed explicitly, so that the environment's are not mixed with them
            known = {name: settings.pop(name, None) for name in _CREDENTIALS}
            known["token"] = known.pop("session_token")
            more["credential_provider"] = lambda: {**known, "expires_at": None}
        try:
            return from_url(
                f"{self.root}/",
                config=settings,
                client_options={
                    "allow_http": settings.get("endpoint", "").startswith("http://"),
                    "timeout": dt.timedelta(seconds=REQUEST_SECONDS),
                    "connect_timeout": dt.timedelta(seconds=CONNECT_SECONDS),
                },
                retry_config={"max_retries": RETRIES, "retry_timeout": dt.timedelta(seconds=RETRY_SECONDS)},
                **more,
            )
        except (BaseError, ValueError) as error:
            raise self.fault(error) from None

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raises the store's errors as StoreError, except FileNotFoundError for a missing object."""
        from obstore.exceptions import BaseError

        try:
            yield
        except FileNotFoundError as error:
            code = _code(error)
            if code is None or code in _ABSENT:
                raise FileNotFoundError(self.url) from None
            raise self.fault(error) from None
        except (BaseError, OSError) as error:
            raise self.fault(error) from None

    def fault(self, error: Exception) -> StoreError:
        """A client's exception, in one sentence."""
        return StoreError(f"{self.url}: {self._sentence(error)}")

    def _sentence(self, error: Exception) -> str:
        text, code = str(error), _code(error)
        if code in _NO_BUCKET:
            return f"there is no bucket {self.bucket}"
        if code in _DENIED or type(error).__name__ in {"PermissionDeniedError", "UnauthenticatedError"}:
            return f"access denied ({code or 'no reason is given'})"
        if "169.254.169.254" in text or "metadata.google.internal" in text:
            return "no credentials were found, in options, environment or profile, nor at this machine's own service"
        if "HTTP error" in text or "error sending request" in text:
            where = dict(self.settings).get("endpoint", "the store")
            return f"{where} cannot be reached"
        if code is not None:
            return f"the store answers {code}"
        return re.sub(r"\?\S*", "", text.partition("\n")[0])[:200]


def _code(error: Exception) -> str | None:
    found = _CODE.search(str(error))
    return None if found is None else found[1]


def hadoop_options(spark: "SparkSession", url: str) -> dict[str, str]:
    """The options of the session's Hadoop configuration for that URL's stores: `spark.hadoop.fs.s3a.access.key` and the like."""
    configuration = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - there is no other way to it
    return {
        prefix + str(name): str(value)
        for prefix in _prefixes(url.partition("://")[0])
        for name, value in dict(configuration.getPropsWithPrefix(prefix)).items()
        if value
    }


def _prefixes(scheme: str) -> tuple[str, ...]:
    """The prefixes of a scheme's settings."""
    if scheme not in SCHEMES:
        from horolog.pipeline.stores.file_systems import HADOOP_NAMES, HDFS

        return HADOOP_NAMES if scheme in HDFS else (f"fs.{scheme}.",)
    return ("fs.s3a." if scheme in S3 else "fs.azure." if scheme in AZURE else "fs.gs.",)


def _s3_settings(bucket: str, options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    def option(name: str) -> str:
        return options.get(f"fs.s3a.bucket.{bucket}.{name}".lower()) or options.get(f"fs.s3a.{name}") or ""

    given = {own: option(name).strip() for name, own in _S3_OPTIONS.items()}
    around = {
        own: next((environment[name] for name in names if environment.get(name)), "")
        for own, names in _S3_ENVIRONMENT.items()
    }
    said = [given, around]
    if not given["access_key_id"] and not around["access_key_id"]:
        said.append(_profile(environment))
    keys = next((one for one in said if one.get("access_key_id")), {})
    found = {name: keys.get(name, "") for name in _CREDENTIALS}
    found |= {name: next((one[name] for one in said if one.get(name)), "") for name in ("endpoint", "region")}
    if found["endpoint"] and "://" not in found["endpoint"]:
        plain = option("connection.ssl.enabled").lower() == "false"
        found["endpoint"] = f"{'http' if plain else 'https'}://{found['endpoint']}"
    style = option("path.style.access").lower()
    found["virtual_hosted_style_request"] = "true" if style == "false" and not found["endpoint"] else "false"
    if "Anonymous" in option("aws.credentials.provider"):
        found["skip_signature"] = "true"
    return {name: value for name, value in found.items() if value}


def _profile(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of the profile AWS_PROFILE, or `default`."""
    name = environment.get("AWS_PROFILE", "default")
    found: dict[str, str] = {}
    home = Path(environment.get("HOME", "~")).expanduser() / ".aws"
    for variable, file, section in (
        ("AWS_CONFIG_FILE", "config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
    ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(environment.get(variable) or home / file)
        except configparser.Error:
            raise StoreError(
                f"{environment.get(variable) or home / file} cannot be read as a file of profiles"
            ) from None
        if parser.has_section(section):
            found |= dict(parser.items(section))
    if "AWS_PROFILE" in environment and "aws_access_key_id" not in found:
        raise StoreError(f"AWS_PROFILE: the profile {name} has no aws_access_key_id in {home}")
    return {own: found.get(theirs, "") for own, theirs in _S3_PROFILE.items()}


def _google_settings(options: Mapping[str, str]) -> dict[str, str]:
    names = ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile")
    found = next((options[name] for name in names if options.get(name)), None)
    return {} if found is None else {"service_account": found}


def _azure_settings(bucket: str, options: Mapping[str, str]) -> dict[str, str]:
    """`container@account.dfs.core.windows.net`, and options that end in the account's host or in nothing."""
    host = bucket.partition("@")[2].lower()

    def option(name: str) -> str:
        return options.get(f"fs.azure.{name}.{host}") or options.get(f"fs.azure.{name}") or ""

    endpoint = re.search(r"//[^/]+/([^/]+)/", option("account.oauth2.client.endpoint") + "/")
    found = {
        "account_key": option("account.key"),
        "sas_key": option("sas.fixed.token"),
        "client_id": option("account.oauth2.client.id"),
        "client_secret": option("account.oauth2.client.secret"),
        "tenant_id": endpoint[1] if endpoint else "",
    }
    return {name: value for name, value in found.items() if value}
