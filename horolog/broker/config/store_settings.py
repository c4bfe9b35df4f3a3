"""The settings of brokers that share an object store. `broker.config.settings` has the rest."""

from dataclasses import dataclass

from horolog.broker.config.group_type_settings import GroupTypeSettings
from horolog.broker.config.setting_types import boolean, integer, long, real, string

LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def wrong_endpoint(text: str) -> str | None:
    is_url = text.startswith(("http://", "https://"))
    return None if is_url else "expected http://HOST:PORT or https://HOST:PORT"


@dataclass(frozen=True, slots=True, repr=False)
class SharedStoreSettings(GroupTypeSettings):
    horolog_store: str | None = string(
        None,
        "The URL of the object store that the brokers of a cluster share: s3://BUCKET/PREFIX, gs://, az:// or file:///FOLDER. Empty: this broker is alone. Credentials come from the environment or the platform. Experimental.",
        nullable=True,
    )
    horolog_store_endpoint: str | None = string(
        None,
        "The URL of an S3 server other than Amazon's, http://HOST:PORT.",
        nullable=True,
        check=wrong_endpoint,
    )
    horolog_store_flush_ms: int = integer(
        250,
        "Time for which records wait, so that one object holds records of many partitions. Use 10 for a fast store.",
        low=0,
        high=60_000,
        dynamic=True,
    )
    horolog_store_flush_bytes: int = integer(
        4 * 2**20,
        "Bytes of waiting records at which the broker writes to the store without waiting any longer.",
        low=1024,
        high=2**28,
        dynamic=True,
    )
    horolog_store_unsafe_bytes: int = integer(
        64 * 2**20,
        "Maximum bytes of records that are not in the store yet. At this limit the broker stops reading from producers.",
        low=2**16,
        dynamic=True,
    )
    horolog_store_cache_bytes: int = long(
        10 * 2**30,
        "Maximum bytes of segments from the store that are cached on the disk. The least used are removed first.",
        low=2**24,
        dynamic=True,
    )
    horolog_store_segment_ms: int = long(
        3_600_000,
        "Age at which the broker closes a segment of 4 MiB or more and uploads it to the store. Smaller segments stay in the write-ahead"
        " logs.",
        low=1_000,
        dynamic=True,
    )
    horolog_store_delete_delay_ms: int = long(
        3_600_000,
        "Time from the expiry of a segment in the store, or the deletion of its topic, until its objects are deleted. Readers of the"
        " segment have this time to finish.",
        low=0,
        dynamic=True,
    )
    horolog_store_history_ms: int = long(
        86_400_000,
        "How far back `horolog store restore` can go: the time for which the store keeps superseded manifests, merged write-ahead logs,"
        " and deleted records and topics. 0 keeps none.",
        low=0,
        dynamic=True,
    )
    horolog_store_lease_ms: int = integer(
        2_000,
        "Time without a response from the store after which a broker refuses its clients. Its successor waits a little longer.",
        low=200,
        high=60_000,
    )
    horolog_peers_timeout_ms: int = integer(
        2_000,
        "Time without a heartbeat from another broker after which it is suspected and its partitions move.",
        low=200,
        high=60_000,
    )
    horolog_replication_factor_accept: bool = boolean(
        False,
        "Whether the broker creates topics with replication factor 2 or 3. The store keeps the copies, so such a topic is shown with one replica.",
        dynamic=True,
    )
    replica_selector_class: str | None = string(
        None,
        "Set to Kafka's RackAwareReplicaSelector, and to the same on all brokers over a store: consumers with client.rack read closed segments"
        " from a broker of their rack.",
        nullable=True,
        choices=(LEADER_SELECTOR, RACK_AWARE_SELECTOR),
    )
    horolog_store_price_writes: float = real(
        5.0,
        "Price in dollars of a million requests that write or list, for the cost metric of the store.",
        low=0,
        dynamic=True,
    )
    horolog_store_price_reads: float = real(
        0.4, "Price in dollars of a million requests that read.", low=0, dynamic=True
    )
