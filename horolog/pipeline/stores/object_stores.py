"""Object stores by URL (s3a, gs, abfss, ...): which one it is, and its credentials under the names that Spark's users know.

For S3 Hadoop's options `fs.s3a.*` override the environment's AWS_*, and these a profile of ~/.aws; with none of them the store's client
asks the machine that it runs on. The driver settles all of that once: tasks get a `Place`. The secrets of a place are never shown,
and a store's error is reported in one sentence of ours, because its own text may contain signatures.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from horolog.stores.credentials import s3_settings
from horolog.stores.faults import StoreError
from horolog.stores.place import (
    AZURE,
    CONNECT_SECONDS,
    GOOGLE,
    REQUEST_SECONDS,
    RETRIES,
    RETRY_SECONDS,
    S3,
    SCHEMES,
    StorePlace,
    as_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = ("fs.", "dfs.", "hadoop.")
"""What options of object stores and file systems begin with."""

DEFAULT_REGION = "us-east-1"

_S3_OPTIONS = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint": "endpoint",
    "endpoint.region": "region",
}
_ADLS_NAMES = {
    "account_key": "adls.account-key",
    "sas_key": "adls.sas-token",
    "client_id": "adls.client-id",
    "client_secret": "adls.client-secret",
    "tenant_id": "adls.tenant-id",
}


def is_url(text: str) -> bool:
    """Whether that is a URL, and no path of this machine's file system."""
    return "://" in text and not text.startswith("file://")


@dataclass(frozen=True, slots=True)
class Place(StorePlace):
    """A place as Spark's users name it: Hadoop's options open it, and tables of other kinds find it by `as_*`."""

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
            raise StoreError(f"{url}: expected {scheme}://BUCKET/FOLDER")
        given = {name.lower(): value for name, value in (options or {}).items()}
        if scheme in S3:
            settings = _s3_settings(bucket, given, environment)
        else:
            settings = _google_settings(given) if scheme in GOOGLE else _azure_settings(bucket, given)
        return cls(url.rstrip("/"), bucket, path.strip("/"), as_settings(settings))

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
        # Without one the client asks Amazon for the region of the bucket, which may be in another store.
        found.setdefault("s3.region", DEFAULT_REGION)
        found |= {"s3.connect-timeout": str(CONNECT_SECONDS), "s3.request-timeout": str(REQUEST_SECONDS)}
        found["s3.force-virtual-addressing"] = settings["virtual_hosted_style_request"]
        return found | ({"s3.anonymous": "true"} if "skip_signature" in settings else {})


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

    found = s3_settings({own: option(name).strip() for name, own in _S3_OPTIONS.items()}, environment)
    if found["endpoint"] and "://" not in found["endpoint"]:
        plain = option("connection.ssl.enabled").lower() == "false"
        found["endpoint"] = f"{'http' if plain else 'https'}://{found['endpoint']}"
    style = option("path.style.access").lower()
    found["virtual_hosted_style_request"] = "true" if style == "false" and not found["endpoint"] else "false"
    if "Anonymous" in option("aws.credentials.provider"):
        found["skip_signature"] = "true"
    return found


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
