"""Objects of segments that the store does not have, or has altered: what cannot be read without each, and when it is asked for again.

An object is on record until a block of it comes that was missing, or until nothing needs it any more.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from horolog.broker.bucket.block_ledger import WHOLE, Block

if TYPE_CHECKING:
    from horolog.broker.bucket.block_fetcher import Wanted

ALTERED = "the store has other bytes than were written"
ASKED_AGAIN_S = 60.0
"""Readers may have given up, and nothing else would find out that an object is back."""
AT_ONCE = 4


class _Lost(NamedTuple):
    """One object: what to ask for, the reason for each block, and when one was asked for last."""

    wanted: Wanted
    reasons: Mapping[int, str]
    asked_s: float


class LostObjects:
    """Those of one broker, by their keys."""

    def __init__(self) -> None:
        self._lost: dict[str, _Lost] = {}

    def __repr__(self) -> str:
        return f"<LostObjects: {len(self._lost)}>"

    def __len__(self) -> int:
        return len(self._lost)

    def note(self, wanted: Wanted, wrong: Mapping[Block, str], now: float) -> None:
        """What has become of blocks that were asked for; those that are not wrong are here."""
        known = self._lost.pop(wanted.key, None)
        if known is None and not wrong:
            return
        asked = {block.number for block in wanted.blocks()}
        reasons = {} if known is None else {at: why for at, why in known.reasons.items() if at not in asked}
        if len(wrong) < len(asked):  # the object is there, so that other blocks are missing no more
            reasons = {at: why for at, why in reasons.items() if why == ALTERED}
        reasons |= {block.number: why for block, why in wrong.items()}
        if reasons:
            first = min(reasons)
            self._lost[wanted.key] = _Lost(wanted._replace(first=first, last=first), reasons, now)

    def line_of(self, key: str) -> str | None:
        """What cannot be read without an object, and why; None if it is not lost."""
        lost = self._lost.get(key)
        if lost is None:
            return None
        number, reason = next(iter(sorted(lost.reasons.items())))
        return f"{lost.wanted.records()} cannot be read: {place_of(Block(key, number))}: {reason}"

    def keep(self, needed: Container[str]) -> None:
        """Forget all others."""
        self._lost = {key: one for key, one in self._lost.items() if key in needed}

    def due(self, now: float) -> Iterator[Wanted]:
        """Blocks that nothing has asked for in a while, a few at once."""
        due = [one for one in self._lost.values() if now - one.asked_s >= ASKED_AGAIN_S]
        for one in due[:AT_ONCE]:
            self._lost[one.wanted.key] = one._replace(asked_s=now)
            yield one.wanted


def place_of(block: Block) -> str:
    return block.key if block.number == WHOLE else f"{block.key}, block {block.number}"
