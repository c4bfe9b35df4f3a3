"""Whether a broker may start on a store. What brokers rest on is tried in full before the first of them writes, and in short after that.

A prefix that is in use has an object that every broker knows. To create it again, with the same bytes, does no harm, and a store that
lets it happen does not keep the condition. So a further broker sends two requests through each address of the store.
"""

import logging
import uuid
from collections.abc import Sequence

from horolog.base.clock import Clock
from horolog.stores.faults import StoreError, StoreRefusal
from horolog.stores.object_store import ObjectStore, Outcome
from horolog.stores.self_test import (
    CLOCKS,
    FOLDER,
    MAX_CLOCK_OFFSET_MS,
    measured_offset_ms,
    self_test,
    settled,
    shown_offset,
)

log = logging.getLogger(__name__)


class StoreRefused(Exception):
    """No broker may use this store; the message says why in one line."""


def check(ways: Sequence[ObjectStore], clock: Clock, first_key: str) -> int:
    """How many milliseconds the store's clock is ahead of ours; `first_key` is there once a prefix is in use.

    Raises StoreRefused, or StoreError if the store does not answer now. An address that does not answer while others do is left out.
    """
    found = _read(ways, first_key)
    contents = set(found.values())
    if len(contents) > 1:
        raise StoreRefused(
            f"{first_key} is not the same through every address of the store, which shows old or other objects"
        )
    answering, content = list(found), contents.pop()
    if content is None:
        _try_everything(answering, clock)
    else:
        _create_again(answering, first_key, content)
    return _clock_offset_ms(answering[0], clock)


def _read(ways: Sequence[ObjectStore], key: str) -> dict[ObjectStore, bytes | None]:
    """The object as each way shows it."""
    found: dict[ObjectStore, bytes | None] = {}
    faults = []
    for way in ways:
        try:
            found[way] = _content(way, key)
        except StoreRefusal as refusal:
            raise StoreRefused(str(refusal)) from None
        except StoreError as fault:
            faults.append(fault)
    if not found:
        raise faults[0]
    for one in faults:
        log.warning("an address of the store is not tested: %s", one)
    if len(set(found.values())) > 1:  # another broker may have created it meanwhile
        found |= {way: _content(way, key) for way, content in found.items() if content is None}
    return found


def _content(way: ObjectStore, key: str) -> bytes | None:
    try:
        return way.get(key)
    except FileNotFoundError:
        return None


def _try_everything(ways: Sequence[ObjectStore], clock: Clock) -> None:
    """The self-test, except that brokers go on with a clock that is wrong, and remove nothing too early."""
    for one in self_test(ways[0], clock, others=ways[1:]):
        if one.is_passing:
            raise StoreError(f"{one.tried}: {one.fault}")
        if one.fault and one.tried != CLOCKS:
            raise StoreRefused(f"the store cannot be used: {one.tried}: {one.fault}")


def _create_again(ways: Sequence[ObjectStore], key: str, content: bytes) -> None:
    for way in ways:
        last = settled(way, key, content)[-1]
        if last.outcome is Outcome.MADE:
            raise StoreRefused(
                f"{key} was created, and had been there: the store does not keep the condition If-None-Match, so nothing would keep"
                " two brokers apart"
            )
        if last.outcome is Outcome.UNKNOWN:
            raise (StoreRefused if last.is_refused else StoreError)(last.fault)


def _clock_offset_ms(way: ObjectStore, clock: Clock) -> int:
    key = f"{FOLDER}/{uuid.uuid4().hex}/clock"
    try:
        offset_ms = measured_offset_ms(way, clock, key)
    except FileNotFoundError:
        raise StoreRefused(f"{key} was created and is not there") from None
    way.delete(key)
    if abs(offset_ms) > MAX_CLOCK_OFFSET_MS:
        log.warning("%s: nothing is removed too early by it", shown_offset(offset_ms))
    return offset_ms
