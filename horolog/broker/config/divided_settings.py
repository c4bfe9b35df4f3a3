"""Divides the limits of a broker among its workers: connections, memory, the cache of a store, and the disk reads of scrubs."""

from __future__ import annotations

from dataclasses import replace

from horolog.broker.config.settings import Settings

DIVIDED = (
    "max.connections",
    "max.connections.per.ip",
    "queued.max.request.bytes",
    "horolog.unfinished.requests.max.bytes",
    "horolog.fetch.memory.max.bytes",
    "horolog.fetch.waiting.max.bytes",
    "horolog.fetch.upconversion.cache.bytes",
    "log.cleaner.dedupe.buffer.size",
    "horolog.scrub.bytes.per.second",
    "horolog.store.cache.bytes",
    "horolog.store.unsafe.bytes",
)
"""`max.connections.per.ip.overrides` is divided, too."""

LEAST = {
    "log.cleaner.dedupe.buffer.size": 2**20,
    "horolog.store.cache.bytes": 2**24,
    "horolog.store.unsafe.bytes": 2**16,
}
"""What a part may not fall below, or nothing works."""


def divided(settings: Settings, workers: int) -> Settings:
    """The settings of one of this many workers; values that clients see stay whole."""
    if workers == 1:
        return settings
    parts: dict[str, object] = {key.replace(".", "_"): _part(settings, key, workers) for key in DIVIDED}
    overrides = tuple(_part_of_address(text, workers) for text in settings.max_connections_per_ip_overrides)
    return replace(settings, max_connections_per_ip_overrides=overrides, **parts)  # type: ignore[arg-type]


def _part(settings: Settings, key: str, workers: int) -> int:
    whole = settings.value(key)
    assert isinstance(whole, int)
    return max(_rounded_up(whole, workers), LEAST.get(key, 1)) if whole > 0 else whole  # -1: no bound, 0: none at all


def _part_of_address(text: str, workers: int) -> str:
    """ADDRESS:COUNT; any other text stays as it is, and is refused where it is used."""
    address, colon, count = text.rpartition(":")
    return f"{address}{colon}{_rounded_up(int(count), workers)}" if count.strip().isdigit() else text


def _rounded_up(whole: int, workers: int) -> int:
    return -(-whole // workers)
