"""The settings with which Kafka makes its internal topics: for those that are made here, and for those found without any."""

from horolog.broker.base.topic_names import GROUP_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from horolog.broker.config.settings import Settings


def overrides_of(name: str, settings: Settings) -> dict[str, str] | None:
    """None for a topic that is not one of them."""
    if name == GROUP_OFFSETS:
        return {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(settings.offsets_topic_segment_bytes),
        }
    if name == TRANSACTION_STATE:
        return {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "segment.bytes": str(settings.transaction_state_log_segment_bytes),
        }
    if name == SHARE_GROUP_STATE:  # its coordinator trims it itself
        return {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "retention.ms": "-1",
            "segment.bytes": str(settings.share_coordinator_state_topic_segment_bytes),
        }
    return None


def partition_count_of(name: str, settings: Settings) -> int:
    """The number of partitions with which a coordinator's topic is made."""
    counts = {
        GROUP_OFFSETS: settings.offsets_topic_num_partitions,
        TRANSACTION_STATE: settings.transaction_state_log_num_partitions,
        SHARE_GROUP_STATE: settings.share_coordinator_state_topic_num_partitions,
    }
    return counts[name]
