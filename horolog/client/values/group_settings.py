"""Kafka's group settings and their enumerated values: for people who write them; the broker decides which are valid."""

from types import MappingProxyType
from typing import Final

_YES_OR_NO: Final = ("true", "false")
GROUP_SETTINGS: Final = MappingProxyType(
    {
        "consumer.assignment.interval.ms": (),
        "consumer.heartbeat.interval.ms": (),
        "consumer.session.timeout.ms": (),
        "share.assignment.interval.ms": (),
        "share.auto.offset.reset": ("earliest", "latest", "by_duration:PT1H"),
        "share.delivery.count.limit": (),
        "share.heartbeat.interval.ms": (),
        "share.isolation.level": ("read_committed", "read_uncommitted"),
        "share.partition.max.record.locks": (),
        "share.record.lock.duration.ms": (),
        "share.renew.acknowledge.enable": _YES_OR_NO,
        "share.session.timeout.ms": (),
        "streams.assignment.interval.ms": (),
        "streams.heartbeat.interval.ms": (),
        "streams.initial.rebalance.delay.ms": (),
        "streams.num.standby.replicas": (),
        "streams.session.timeout.ms": (),
    }
)
"""Those of Kafka 4.3. Earlier releases have fewer, and refuse the others; horolog has none."""
