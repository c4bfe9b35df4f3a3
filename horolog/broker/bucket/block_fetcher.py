"""Brings blocks of objects here: one GET for each, however many readers wait for it, and none is kept that is not what was sealed.

A reader that misses a block asks for it, gets `NotHere` to raise, and is woken when the block is here. Blocks that a reader may want next
are brought, several with one GET, when no GET has to wait for that. Where many of those that are kept are still unread, nothing more is
brought ahead: their readers may have gone, or may be so many that they take each other's blocks. A block that the store does not have,
refuses, or has altered is lost: it is asked for again after a while, and keeps no other block waiting.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from horolog.broker.base.answers import Answer, run
from horolog.broker.base.own_thread import AtOnce, OffLoop
from horolog.broker.bucket.block_files import BlockFiles
from horolog.broker.bucket.block_ledger import WHOLE, Block
from horolog.broker.bucket.lost_objects import ALTERED, LostObjects, place_of
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.log.integrity import BLOCK_BYTES
from horolog.broker.log.storage import NotHere, StorageFault
from horolog.stores.faults import StoreRefusal
from horolog.stores.object_store import Bytes

log = logging.getLogger(__name__)

AT_ONCE = 4
"""GETs under way: half of the requests that a broker has for everything."""
FAILS_AFTER_S = 3.0
"""A block that has been on its way for longer is an error to its readers, who ask again."""
LOST_FOR_S = 5.0
SAID_AGAIN_S = 60.0
"""A block that is lost again for the same reason within this time is not worth another line in the log."""
AHEAD_SHARE = 2
"""One in this many of the kept blocks may be unread: those that come ahead must not go before they are read."""
ATTEMPTS = 2

Wake = Callable[[], None]


class Wanted(NamedTuple):
    """Neighbouring blocks of one object, or a whole object if both numbers are WHOLE."""

    key: str
    first: int
    last: int
    size_bytes: int
    """Of the object; not used for a whole one."""
    is_right: Callable[[int, Bytes], bool]
    """Whether the bytes are those of the block with that number; it runs in another thread, unless they are a whole object."""
    records: Callable[[], str]
    """Says for the log which records cannot be read without it."""

    def blocks(self) -> Iterator[Block]:
        return (Block(self.key, number) for number in range(self.first, self.last + 1))

    def span_of(self, number: int) -> tuple[int, int]:
        return number * BLOCK_BYTES, min((number + 1) * BLOCK_BYTES, self.size_bytes)


class _Asked(NamedTuple):
    """A block on its way: since when, and who waits for it."""

    since_s: float
    wakes: dict[Wake, None]


class _Came(NamedTuple):
    """A block whose bytes are here, and the path of its file unless the disk takes none."""

    block: Block
    data: Bytes
    path: str | None


class _Lost(NamedTuple):
    reason: str
    until_s: float


Soon = Callable[[Callable[[], None]], object]
"""Calls back in the next turn: `loop.call_soon`."""


class BlockFetcher:
    """See the module's docstring."""

    def __init__(
        self,
        store: StoreAccess,
        files: BlockFiles,
        soon: Soon,
        now: Callable[[], float],
        off_loop: OffLoop,
    ) -> None:
        self.files = files
        self.lost = LostObjects()
        self._off_loop = off_loop
        self._store = store
        self._soon = soon
        self._now = now
        self._asked: dict[Block, _Asked] = {}
        self._lost: dict[Block, _Lost] = {}
        self._queue: deque[Wanted] = deque()
        self._under_way = 0
        self._begins = False

    def __repr__(self) -> str:
        return f"<BlockFetcher: {len(self._asked)} blocks are on their way, {self.files!r}>"

    @property
    def is_idle(self) -> bool:
        return not self._queue and not self._under_way

    def want(self, wanted: Wanted, wake: Wake) -> StorageFault:
        """Have blocks brought; returns what the reader raises."""
        now = self._now()
        lost = next((fault for one in wanted.blocks() if (fault := self._lost_now(one, now)) is not None), None)
        if lost is not None:
            return StorageFault(f"{wanted.key}: {lost}", path=wanted.key)
        self._ask(wanted, now)
        asked = [self._asked[one] for one in wanted.blocks() if one in self._asked]
        for one in asked:
            one.wakes[wake] = None
        if not asked:
            self._soon(wake)  # they have come meanwhile
        has_failed = any(now - one.since_s > FAILS_AFTER_S for one in asked)
        return NotHere(f"{wanted.key} is on its way here", path=wanted.key, has_failed=has_failed)

    def want_next(self, wanted: Wanted) -> bool:
        """Have neighbouring blocks brought that a reader may want next, if nothing has to wait for them and there is room; whether they come."""
        missing = self._missing(wanted)
        if not missing:
            return True
        if len(self._queue) + self._under_way >= AT_ONCE:
            return False
        now = self._now()
        coming_bytes = (len(self._asked) + len(missing)) * BLOCK_BYTES
        has_room = self.files.unread_bytes + coming_bytes <= self.files.limit_bytes() // AHEAD_SHARE
        comes = (has_room or not self._asked) and all(self._lost_now(one, now) is None for one in missing)
        if comes:
            self._ask(wanted, now)
        return comes

    def ask_again(self) -> None:
        """Ask for objects that are lost, now and then: they may be back."""
        now = self._now()
        for wanted in self.lost.due(now):
            self._ask(wanted, now)

    def _lost_now(self, block: Block, now: float) -> str | None:
        lost = self._lost.get(block)
        return None if lost is None or now >= lost.until_s else lost.reason

    def _ask(self, wanted: Wanted, now: float) -> None:
        """Ask for those that are neither here nor on their way, with those between them."""
        missing = self._missing(wanted)
        if not missing:
            return
        several = wanted._replace(first=missing[0].number, last=missing[-1].number)
        for one in several.blocks():
            self._asked.setdefault(one, _Asked(now, {}))
        self._queue.append(several)
        if not self._begins:
            self._begins = True
            self._soon(self._begin)

    def _missing(self, wanted: Wanted) -> list[Block]:
        """The blocks that are neither here nor on their way."""
        return [one for one in wanted.blocks() if one not in self._asked and one not in self.files]

    def _begin(self) -> None:
        self._begins = False
        while self._queue and self._under_way < AT_ONCE:
            self._under_way += 1
            run(self._bring(self._queue.popleft()))

    async def _bring(self, wanted: Wanted) -> None:
        wrong: dict[Block, str] = {}
        for _ in range(ATTEMPTS):
            try:
                wrong = await self._take(wanted, await self._bytes_of(wanted))
            except StoreRefusal as refusal:
                wrong = dict.fromkeys(wanted.blocks(), str(refusal))
                break
            if not wrong:
                break
        self._note_lost(wanted, wrong)
        self._under_way -= 1
        asked = [self._asked.pop(one, None) for one in wanted.blocks()]
        wakes = {wake: None for one in asked if one is not None for wake in one.wakes}
        for wake in wakes:
            wake()
        self._begin()

    def _note_lost(self, wanted: Wanted, wrong: Mapping[Block, str]) -> None:
        now = self._now()
        self.lost.note(wanted, wrong, now)
        if self._lost:
            self._lost = {block: one for block, one in self._lost.items() if now < one.until_s + SAID_AGAIN_S}
        for block, reason in wrong.items():
            before = self._lost.get(block)
            if before is None or before.reason != reason:
                log.error("%s cannot be read: %s: %s", wanted.records(), place_of(block), reason)
            self._lost[block] = _Lost(reason, now + LOST_FOR_S)

    async def _bytes_of(self, wanted: Wanted) -> Bytes | None:
        if wanted.first == WHOLE:
            return await self._store.read(wanted.key, insists=False)
        start, end = wanted.span_of(wanted.first)[0], wanted.span_of(wanted.last)[1]
        return await self._store.view_range(wanted.key, start, end, insists=False)

    async def _take(self, wanted: Wanted, data: Bytes | None) -> dict[Block, str]:
        """Keep the blocks that are right; returns the others, and why."""
        if data is None:
            return dict.fromkeys(wanted.blocks(), "the store does not have it")
        came = [(block, part, self.files.new_path()) for block, part in _parts(wanted, data)]
        off_loop = AtOnce().run if wanted.first == WHOLE else self._off_loop
        right = await Answer[list[_Came]](partial(off_loop, partial(self._right_ones, wanted.is_right, came)))
        for block, part, path in right:
            asked = self._asked.get(block)
            self.files.keep(block, part, path, is_awaited=asked is not None and bool(asked.wakes))
        kept = {one.block for one in right}
        wrong = [block for block, _, _ in came if block not in kept]
        return dict.fromkeys(wrong, ALTERED)

    def _right_ones(
        self, is_right: Callable[[int, Bytes], bool], came: Iterable[tuple[Block, Bytes, str]]
    ) -> list[_Came]:
        """Those that are right, in files as far as the disk takes them; in any thread."""
        return [
            _Came(block, data, path if self.files.write(path, data) else None)
            for block, data, path in came
            if is_right(block.number, data)
        ]


def _parts(wanted: Wanted, data: Bytes) -> Iterator[tuple[Block, Bytes]]:
    """The blocks that came with one GET."""
    before = wanted.span_of(wanted.first)[0]
    for block in wanted.blocks():
        start, end = wanted.span_of(block.number)
        yield block, data if block.number == WHOLE else memoryview(data)[start - before : end - before]
