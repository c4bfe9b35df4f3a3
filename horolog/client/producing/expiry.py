"""Notices records that are older than their topic's retention when they are sent: they may be deleted as soon as they arrive.

A topic's settings are requested at the first record with a given time more than a minute old, and again after `LOOK_AGAIN_S`.
Nothing is noticed if the broker is too old for the request, or the client is not authorized to it.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from horolog.base.readable import format_duration, format_time
from horolog.client.admin.admin_configs import Config
from horolog.client.values.errors import KafkaError
from horolog.client.wire.client import Client
from horolog.protocol.apis import ApiKey
from horolog.protocol.epoch_units import UNIT_NAMES, misread_as_ms, to_ms

log = logging.getLogger("horolog.client.producer")

RECENT_MS = 60_000
"""A record no older than this is not worth a request."""
LOOK_AGAIN_S = 900.0
SETTLE_S = 2.0
"""How long closing a producer waits for requested settings."""
FOR_EVER_MS = 2**63 - 1
_KEYS = ("cleanup.policy", "message.timestamp.type", "retention.ms")


class Expired(NamedTuple):
    """A record past its topic's retention."""

    topic: str
    timestamp_ms: int
    kept_ms: int
    edge_ms: int
    """Records earlier than this are deleted."""

    def sentence(self, show_time: Callable[[int], str] = format_time) -> str:
        unit = misread_as_ms(self.timestamp_ms)
        hint = ""
        if unit is not None:
            as_meant = show_time(to_ms(self.timestamp_ms, unit))
            hint = f"; {self.timestamp_ms} looks like {UNIT_NAMES[unit]}, which would be {as_meant}"
        return (
            f"topic {self.topic} keeps records for {format_duration(self.kept_ms)} (retention.ms), back to"
            f" {show_time(self.edge_ms)}: a record of {show_time(self.timestamp_ms)} may be deleted as soon as it is written{hint}"
        )


Tell = Callable[[Expired], None]


def log_warning(expired: Expired) -> None:
    log.warning("%s", expired.sentence())


def kept_ms(configs: dict[str, Config]) -> int:
    """How long a topic with these settings keeps a record by the producer's time."""
    values = {key: config.value or "" for key, config in configs.items()}
    if (
        "delete" not in values.get("cleanup.policy", "delete")
        or values.get("message.timestamp.type") == "LogAppendTime"
    ):
        return FOR_EVER_MS
    retention_ms = int(values.get("retention.ms") or -1)
    return retention_ms if retention_ms >= 0 else FOR_EVER_MS


class ExpiryWatch:
    """Reports each topic once per look at its settings."""

    def __init__(self, client: Client, tell: Tell) -> None:
        self._client = client
        self._tell = tell
        self._kept_ms: dict[str, int] = {}
        self._looked_at: dict[str, float] = {}
        self._oldest: dict[str, int] = {}  # of topics whose settings are being asked for
        self._looks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<ExpiryWatch of {len(self._kept_ms)} topics>"

    def note(self, topic: str, timestamp_ms: int) -> None:
        """Note a record whose time the application gave."""
        if timestamp_ms < 0 or self._client.clock.wall_ms() - timestamp_ms <= RECENT_MS:
            return
        looked_at = self._looked_at.get(topic)
        if looked_at is None or self._client.clock.monotonic() - looked_at > LOOK_AGAIN_S:
            self._looked_at[topic] = self._client.clock.monotonic()
            self._kept_ms.pop(topic, None)
            self._oldest[topic] = timestamp_ms
            task = asyncio.create_task(self._look(topic))
            self._looks.add(task)
            task.add_done_callback(self._looks.discard)
        elif topic in self._kept_ms:
            self._judge(topic, timestamp_ms)
        else:
            self._oldest[topic] = min(timestamp_ms, self._oldest[topic])

    async def _look(self, topic: str) -> None:
        kept = FOR_EVER_MS
        try:
            if (await self._client.versions()).serves(ApiKey.DESCRIBE_CONFIGS, 0):
                from horolog.client.admin.admin import Admin

                kept = kept_ms(await Admin(self._client).describe_configs("topic", topic, _KEYS))
        except (KafkaError, OSError, ValueError) as error:
            log.debug("the settings of topic %s are not known: %s", topic, error)
        self._kept_ms[topic] = kept
        self._judge(topic, self._oldest.pop(topic))

    def _judge(self, topic: str, timestamp_ms: int) -> None:
        edge_ms = self._client.clock.wall_ms() - self._kept_ms[topic]
        if timestamp_ms < edge_ms:
            self._tell(Expired(topic, timestamp_ms, self._kept_ms[topic], edge_ms))
            self._kept_ms[topic] = FOR_EVER_MS

    async def close(self, *, wait: bool) -> None:
        """Stop; with `wait`, looks in flight get a moment, so that a program that sends one record is warned too."""
        if wait and self._looks:
            await asyncio.wait(self._looks, timeout=SETTLE_S)
        for task in tuple(self._looks):
            task.cancel()
