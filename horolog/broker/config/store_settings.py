"""The settings of brokers that share an object store. `broker.config.settings` has the rest."""

from dataclasses import dataclass

from horolog.broker.config.group_type_settings import GroupTypeSettings
from horolog.broker.config.setting_types import boolean, integer, long, real, string


def _wrong_endpoint(text: str) -> str | None:
    is_url = text.startswith(("http://", "https://"))
    return None if is_url else "http://HOST:PORT is allowed, or https://"


@dataclass(frozen=True, slots=True, repr=False)
class SharedStoreSettings(GroupTypeSettings):
    horolog_store: str | None = string(
        None,
        "The place in an object store that the brokers of a cluster share, s3://BUCKET/PREFIX, gs://, az:// or file:///FOLDER; none:"
        " this broker is alone. Credentials come from the environment or the platform. Experimental.",
        nullable=True,
    )
    horolog_store_endpoint: str | None = string(
        None,
        "The URL of an S3 server that is not Amazon's, http://HOST:PORT.",
        nullable=True,
        check=_wrong_endpoint,
    )
    horolog_store_flush_ms: int = integer(
        100,
        "Time for which records wait so that one object holds those of many partitions; 10 where the store is fast.",
        low=0,
        high=60_000,
        dynamic=True,
    )
    horolog_store_flush_bytes: int = integer(
        4 * 2**20, "Bytes of records that are sent to the store without waiting.", low=1024, high=2**28, dynamic=True
    )
    horolog_store_unsafe_bytes: int = integer(
        64 * 2**20,
        "Bytes of records that the store does not have yet; at this limit producers cannot send more.",
        low=2**16,
        dynamic=True,
    )
    horolog_store_cache_bytes: int = long(
        10 * 2**30,
        "Bytes of segments from the store that are kept on the disk; the least used go first.",
        low=2**20,
        dynamic=True,
    )
    horolog_store_lease_ms: int = integer(
        2_000,
        "Time without an answer of the store after which a broker refuses its clients; its successor waits a little longer.",
        low=200,
        high=60_000,
    )
    horolog_peers_timeout_ms: int = integer(
        2_000,
        "Time without a sign of another broker after which it is suspected, and its partitions move.",
        low=200,
        high=60_000,
    )
    horolog_replication_factor_accept: bool = boolean(
        False,
        "Whether a topic that is to have 2 or 3 copies is created: the store keeps the copies, so it is shown with one.",
        dynamic=True,
    )
    horolog_store_price_writes: float = real(
        5.0,
        "Dollars for a million requests that write or list, for the metric of what the store costs.",
        low=0,
        dynamic=True,
    )
    horolog_store_price_reads: float = real(0.4, "Dollars for a million requests that read.", low=0, dynamic=True)
