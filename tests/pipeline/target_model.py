"""A target in memory for `exactly_once`, where a scheduler picks whose request goes next, and who dies before or behind it."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import Committed
from horolog.pipeline.writing.exactly_once import Owner, State
from horolog.protocol.errors import ErrorCode

_ENDS = {True: ("PrepareCommit", "CompleteCommit"), False: ("PrepareAbort", "CompleteAbort")}


@dataclass
class Transaction:
    owner: Owner
    state: str = "Empty"
    rows: list[object] = field(default_factory=list)
    notes: dict[str, Committed] = field(default_factory=dict)


class Target:
    """The rules of a coordinator with epochs that stay when a transaction ends, whose markers come after its answer."""

    def __init__(self) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.notes: dict[str, Committed] = {}
        self.visible: list[object] = []
        self.tells_states = True

    def take(self, transactional_id: str, owner: Owner | None) -> Owner:
        found = self.transactions.setdefault(transactional_id, Transaction(Owner(len(self.transactions), -1)))
        if owner is not None and owner != found.owner:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if found.state == "Ongoing":
            self._prepare(found, commit=False)
        self.complete(found)
        found.owner = found.owner._replace(epoch=found.owner.epoch + 1)
        found.state = "Empty"
        return found.owner

    def write(self, transactional_id: str, owner: Owner, rows: Sequence[object]) -> None:
        self._open(transactional_id, owner).rows += rows

    def note(self, transactional_id: str, owner: Owner, group: str, noted: Committed) -> None:
        self._open(transactional_id, owner).notes[group] = noted

    def _open(self, transactional_id: str, owner: Owner) -> Transaction:
        found = self._mine(transactional_id, owner)
        self.complete(found)
        found.state = "Ongoing"
        return found

    def _mine(self, transactional_id: str, owner: Owner) -> Transaction:
        found = self.transactions.get(transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if found.owner != owner:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        return found

    def end(self, transactional_id: str, owner: Owner, commit: bool) -> None:
        found = self._mine(transactional_id, owner)
        if found.state in _ENDS[commit]:
            return
        if found.state != "Ongoing":
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        self._prepare(found, commit=commit)

    def _prepare(self, found: Transaction, *, commit: bool) -> None:
        found.state = _ENDS[commit][0]

    def complete(self, found: Transaction) -> None:
        """The markers: what was prepared can be read now, or never."""
        if found.state == "PrepareCommit":
            self.visible += found.rows
            self.notes |= found.notes
        if found.state.startswith("Prepare"):
            found.state = found.state.replace("Prepare", "Complete")
            found.rows, found.notes = [], {}

    def time_out(self, found: Transaction) -> None:
        if found.state == "Ongoing":
            found.owner = found.owner._replace(epoch=found.owner.epoch + 1)
            self._prepare(found, commit=False)
            self.complete(found)

    def noted(self, group: str) -> Committed | None:
        for found in self.transactions.values():
            if group in found.notes:
                self.complete(found)
            if group in found.notes:
                raise KafkaError(ErrorCode.UNSTABLE_OFFSET_COMMIT)
        return self.notes.get(group)


class Requests:
    """Implements `exactly_once.Broker` for one process, which may die at any of its requests."""

    def __init__(self, target: Target, turns: "Turns") -> None:
        self.target = target
        self._turns = turns

    async def take(self, transactional_id: str, owner: Owner | None = None) -> Owner:
        return await self._turns.turn(lambda: self.target.take(transactional_id, owner))

    async def write(self, transactional_id: str, owner: Owner, rows: Sequence[object]) -> None:
        await self._turns.turn(lambda: self.target.write(transactional_id, owner, rows))

    async def note(self, transactional_id: str, owner: Owner, group: str, noted: Committed) -> None:
        await self._turns.turn(lambda: self.target.note(transactional_id, owner, group, noted))

    async def end(self, transactional_id: str, owner: Owner, *, commit: bool) -> None:
        await self._turns.turn(lambda: self.target.end(transactional_id, owner, commit))

    async def noted(self, group: str) -> Committed | None:
        return await self._turns.turn(lambda: self.target.noted(group))

    async def states(self, transactional_ids: Sequence[str]) -> Mapping[str, State] | None:
        if not self.target.tells_states:
            return None
        found = self.target.transactions

        def look():
            return {each: State(found[each].state, found[each].owner) for each in transactional_ids if each in found}

        return await self._turns.turn(look)

    async def open_ids(self) -> Collection[str]:
        def look():
            return [name for name, each in self.target.transactions.items() if each.state == "Ongoing"]

        return await self._turns.turn(look)


class Turns:
    """Requests wait here until the scheduler lets one go."""

    def __init__(self) -> None:
        self.waiting = []

    async def turn(self, request):
        let_go = asyncio.get_running_loop().create_future()
        self.waiting.append((let_go, request, asyncio.current_task()))
        return await let_go

    async def settle(self) -> None:
        """Until everybody waits for a turn, or is done."""
        for _ in range(8):
            await asyncio.sleep(0)
        self.waiting = [each for each in self.waiting if not each[0].done()]

    def go(self, number: int, *, answered: bool = True) -> None:
        let_go, request, _ = self.waiting.pop(number)
        try:
            answer = request()
        except KafkaError as error:
            if answered:
                let_go.set_exception(error)
        else:
            if answered:
                let_go.set_result(answer)
