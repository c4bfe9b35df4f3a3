"""Whatever is killed, repeated, started twice or timed out, at whichever request: each row of a batch is there once, or the write says so."""

import asyncio
import random

import pytest

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import Committed
from horolog.pipeline.writing.exactly_once import (
    PARTS_IN_CHUNK,
    Claim,
    Decision,
    Owner,
    Part,
    Standing,
    WriteFailed,
    abort_open,
    abort_parts,
    chunks_of,
    claim,
    commit,
    completed,
    count_of_chunks,
    decision_of,
    driver_id,
    give_up,
    is_to_be_written,
    note_of,
    task_id,
)
from horolog.protocol.errors import ErrorCode
from tests.pipeline.target_model import Requests, Target, Turns

NAME, OF = "load", "query"
ROWS, BATCHES, TASKS = 4, 3, 2
MOST_STEPS = 3000


# -- Spark, as far as it matters: a driver that walks from batch to batch, tasks that may be run again, executors that outlive it


class World:
    """Drivers and their tasks over one target; `rng` says who goes next, and who dies."""

    def __init__(self, rng, *, same_split=True, tasks=TASKS):
        self.rng, self.same_split, self.most_tasks = rng, same_split, tasks
        self.target, self.turns = Target(), Turns()
        self.next_batch = 0  # Spark's checkpoint
        self.drivers, self.refusals = [], []

    def split(self, batch):
        rows = [(batch, n) for n in range(ROWS)]
        tasks = self.most_tasks if self.same_split else self.rng.randint(1, self.most_tasks)
        if not self.same_split:
            self.rng.shuffle(rows)
        return [rows[task::tasks] for task in range(tasks)]

    def start(self):
        driver = {"tasks": []}
        driver["run"] = asyncio.ensure_future(self.drive(driver))
        self.drivers.append(driver)

    async def drive(self, driver):
        requests = Requests(self.target, self.turns)
        while self.next_batch < BATCHES:
            batch = self.next_batch
            claimed = await claim(requests, NAME)
            parts = []
            try:
                running = [
                    asyncio.ensure_future(self.task(claimed, batch, task, rows))
                    for task, rows in enumerate(self.split(batch))
                ]
                driver["tasks"] += running
                parts = [part for part in await asyncio.gather(*running) if part is not None]
                if batch > claimed.standing.batch or claimed.standing.lost:
                    await commit(requests, claimed, batch, OF, parts)
            except (WriteFailed, KafkaError) as error:
                self.refusals.append(str(error))
                await give_up(requests, claimed, parts)
                raise
            self.next_batch = max(self.next_batch, batch + 1)

    async def task(self, claimed, batch, task, rows):
        """A task that fails is run again, as Spark does, and a second one may run beside it."""
        if not is_to_be_written(claimed, batch, OF, task):
            return None
        for attempt in range(3):
            try:
                return await self.attempt(batch, task, attempt, rows)
            except KafkaError:
                if attempt == 2:
                    raise
        return None

    async def attempt(self, batch, task, attempt, rows):
        requests, transactional_id = Requests(self.target, self.turns), task_id(NAME, task, attempt)
        owner = await requests.take(transactional_id)
        if self.rng.random() < 0.1:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        for row in rows:
            await requests.write(transactional_id, owner, [row])
        if not rows:
            return None
        await requests.note(transactional_id, owner, transactional_id, note_of(batch, owner))
        digest = sum(hash(row) for row in rows) % 1_000_003
        return Part(task, attempt, owner, len(rows), digest)

    def kill(self, driver):
        """Its executors may live on."""
        driver["run"].cancel()
        for task in driver["tasks"]:
            if self.rng.random() < 0.5:
                task.cancel()

    def check(self):
        seen = self.target.visible
        assert len(seen) == len(set(seen)), f"doubled: {seen}"

    async def finish(self):
        """Undisturbed drivers, one after the other, until one is done."""
        for _ in range(8):
            self.start()
            await self.run_to_end(self.drivers[-1])
            self.check()
            if self.next_batch == BATCHES:
                break
        for driver in self.drivers:
            for one in (driver["run"], *driver["tasks"]):
                one.cancel()
            await asyncio.gather(driver["run"], *driver["tasks"], return_exceptions=True)
        visible(self.target)

    async def run_to_end(self, driver):
        for _ in range(MOST_STEPS):
            await self.turns.settle()
            if driver["run"].done():
                return
            self.turns.go(0)
        raise AssertionError("it does not come to an end")


async def chaos(world, steps, *, timeouts):
    """So many requests in any order, drivers dying and starting between them."""
    rng, target = world.rng, world.target
    world.start()
    for _ in range(steps):
        await world.turns.settle()
        alive = [each for each in world.drivers if not each["run"].done()]
        dice = rng.random()
        if not alive or (dice < 0.01 and len(alive) < 2):
            if world.next_batch == BATCHES:
                break
            world.start()
        elif dice < 0.04:
            world.kill(rng.choice(alive))
        elif dice < 0.06 and timeouts and target.transactions:
            target.time_out(rng.choice(list(target.transactions.values())))
        elif dice < 0.15 and target.transactions:
            target.complete(rng.choice(list(target.transactions.values())))
        elif world.turns.waiting:
            number = rng.randrange(len(world.turns.waiting))
            if dice > 0.98:  # carried out, but the answer never comes: the one who asked is dead
                actor = world.turns.waiting[number][2]
                world.turns.go(number, answered=False)
                owner = next((d for d in world.drivers if d["run"] is actor or actor in d["tasks"]), None)
                if owner is None or owner["run"] is actor:
                    world.kill(rng.choice(alive))
                else:
                    actor.cancel()
                    world.kill(owner)
            else:
                world.turns.go(number)
        world.check()
    for driver in world.drivers:
        if not driver["run"].done():
            world.kill(driver)
    await world.turns.settle()


PARTS = 6
EVERYTHING = sorted((batch, n) for batch in range(BATCHES) for n in range(ROWS))


@pytest.mark.parametrize("timeouts", [False, True])
@pytest.mark.parametrize("tells_states", [False, True])
@pytest.mark.parametrize("same_split", [False, True])
def test_in_any_order_with_any_deaths_each_row_is_there_once(same_split, tells_states, timeouts):
    lost = 0
    for seed in range(60):
        world = World(random.Random(seed), same_split=same_split)
        world.target.tells_states = tells_states

        async def run(world=world, seed=seed):
            await chaos(world, 20 + seed * 7, timeouts=timeouts)
            await world.finish()

        asyncio.run(run())
        world.check()
        if sorted(world.target.visible) == EVERYTHING:
            continue
        assert not same_split, f"seed {seed}: {world.refusals}"
        assert any("are different now" in each for each in world.refusals), f"seed {seed}: {world.refusals}"
        lost += 1
    assert lost < 30


@pytest.mark.one_in(4)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("behind", [False, True])
def test_a_death_at_each_request_and_another_at_each_of_the_next_run(behind, part):
    """One driver, one task after the other: every place where it can die, twice in a row."""

    async def run(first, second):
        world = World(random.Random(1))
        world.rng.random = lambda: 1.0  # no failures of tasks, and no executor that lives on is cancelled
        for place in (first, second):
            world.start()
            driver = world.drivers[-1]
            for _ in range(place):
                await world.turns.settle()
                if driver["run"].done():
                    break
                world.turns.go(0)
            await world.turns.settle()
            if behind and world.turns.waiting:
                world.turns.go(0, answered=False)
            driver["run"].cancel()
            for task in driver["tasks"]:
                task.cancel()
            world.check()
        await world.finish()
        assert sorted(world.target.visible) == EVERYTHING, (first, second, world.refusals)
        return driver["run"].cancelled()

    for first in range(part, 60, PARTS):
        for second in (0, 3, 7, 13, 17, 20, 25):
            asyncio.run(run(first, second))


# -- single decisions


class AtOnce(Turns):
    async def turn(self, request):
        return request()


@pytest.fixture
def target():
    return Target()


@pytest.fixture
def requests(target):
    return Requests(target, AtOnce())


async def written(requests, batch, task=0, attempt=0, rows=("row",)):
    transactional_id = task_id(NAME, task, attempt)
    owner = await requests.take(transactional_id)
    await requests.write(transactional_id, owner, rows)
    await requests.note(transactional_id, owner, transactional_id, note_of(batch, owner))
    return Part(task, attempt, owner, len(rows), 1)


def visible(target):
    """What readers of committed records see once all markers are written."""
    for each in target.transactions.values():
        target.complete(each)
    return sorted(target.visible)


def state(target, part):
    return target.transactions[part.transactional_id(NAME)].state


@pytest.mark.parametrize("count", [0, 1, PARTS_IN_CHUNK, PARTS_IN_CHUNK + 1, 1000])
def test_a_decision_is_read_as_it_was_noted(count):
    parts = tuple(Part(n, n % 4, Owner(2**40 + n, n % 32768), 2**40, 2**63 - 1 - n) for n in range(count))
    decision = Decision(7, "query", parts)
    chunks = chunks_of(decision)
    assert all(len(each.metadata) < 4096 and count_of_chunks(NAME, each) == len(chunks) for each in chunks)
    assert decision_of(NAME, chunks) == decision


@pytest.mark.parametrize("noted", ["", "{", "[]", '{"of":""}', '{"of":"","chunks":1,"parts":[[1]]}'])
def test_a_note_that_is_no_decision_is_told(noted):
    with pytest.raises(WriteFailed, match="note of group load-driver-0 cannot be read"):
        decision_of(NAME, [Committed(3, noted)])
    with pytest.raises(WriteFailed, match="cannot be read: None"):
        decision_of(NAME, [None])


def test_a_damaged_number_of_chunks_is_told():
    with pytest.raises(WriteFailed, match="cannot be read"):
        count_of_chunks(NAME, Committed(3, "x"))


def test_a_name_belongs_to_one_stream_and_its_batches_rise():
    there, lost = Part(0, 0, Owner(1, 1), 1, 1), Part(1, 0, Owner(2, 1), 1, 1)
    fresh = Claim(NAME, Owner(0, 0))
    done = Claim(NAME, Owner(0, 0), Standing(5, OF, (there, lost)))
    half = Claim(NAME, Owner(0, 0), Standing(5, OF, (there,), (lost,)))
    assert is_to_be_written(fresh, 0, OF, 0)
    assert [is_to_be_written(done, batch, OF, 0) for batch in (4, 5, 6)] == [False, False, True]
    assert [is_to_be_written(half, 5, OF, task) for task in (0, 1, 2)] == [False, True, True]
    with pytest.raises(WriteFailed, match="belongs to the stream query, whose batch 5 is noted"):
        is_to_be_written(done, 6, "another", 0)
    with pytest.raises(WriteFailed, match="belongs to writes of data frames"):
        is_to_be_written(Claim(NAME, Owner(0, 0), Standing(5)), 6, OF, 0)


def test_what_timed_out_is_written_again_only_row_for_row():
    there, lost = Part(0, 0, Owner(1, 1), 4, 9), Part(1, 0, Owner(2, 1), 5, 8)
    half = Claim(NAME, Owner(0, 0), Standing(5, OF, (there,), (lost,)))
    again = lost._replace(attempt=1, owner=Owner(2, 7))
    assert completed(half, 5, [again]) == (there, again)
    assert completed(half, 6, [again]) == (again,)
    others = [again._replace(rows=4)], [again._replace(digest=7)], [], [again, again._replace(task=2)]
    for wrong in others:
        with pytest.raises(
            WriteFailed, match=r"1 of its transactions with 5 rows timed out since; .* are different now"
        ):
            completed(half, 5, wrong)


def test_a_decided_batch_is_known_though_its_ids_are_in_other_hands(target, requests):
    """A task of a later batch, or of a dead driver, has taken the transactional id: the note tells."""

    async def run():
        first = await claim(requests, NAME)
        parts = [await written(requests, 3, task) for task in range(3)]
        await commit(requests, first, 3, OF, parts)
        await requests.take(task_id(NAME, 0, 0))
        await written(requests, 4, task=1)
        assert (await claim(requests, NAME)).standing == Standing(3, OF, tuple(parts))

    asyncio.run(run())


def test_a_decided_transaction_that_timed_out_is_lost_and_can_be_written_again(target, requests):
    async def run():
        first = await claim(requests, NAME)
        parts = [await written(requests, 3, task, rows=[task]) for task in range(2)]

        class Dies(Exception):
            pass

        def die(*_, **__):
            raise Dies

        end = target.end
        target.end = lambda *each: end(*each) if each[0] == driver_id(NAME) else die()
        with pytest.raises(Dies):
            await commit(requests, first, 3, OF, parts)
        target.end = end
        target.time_out(target.transactions[task_id(NAME, 1, 0)])
        second = await claim(requests, NAME)
        assert second.standing == Standing(3, OF, (parts[0],), (parts[1],))
        again = await written(requests, 3, 1, rows=[1])
        await commit(requests, second, 3, OF, [again])
        assert (await claim(requests, NAME)).standing == Standing(3, OF, (parts[0], again))
        assert visible(target) == [0, 1]

    asyncio.run(run())


def test_what_the_target_has_forgotten_is_not_guessed(target, requests):
    async def run():
        await commit(requests, await claim(requests, NAME), 3, OF, [await written(requests, 3)])
        assert visible(target) == ["row"]
        del target.transactions[task_id(NAME, 0, 0)], target.notes[task_id(NAME, 0, 0)]
        with pytest.raises(WriteFailed, match="the target no longer knows how batch 3 of load ended"):
            await claim(requests, NAME)

    asyncio.run(run())


def test_a_later_driver_fences_the_earlier(target, requests):
    async def run():
        earlier = await claim(requests, NAME)
        part = await written(requests, 0)
        later = await claim(requests, NAME)
        assert state(target, part).endswith("Abort") or state(target, part) == "Empty"
        late = await written(requests, 0, attempt=1)
        with pytest.raises(WriteFailed, match="another driver has taken over load; it will write batch 0"):
            await commit(requests, earlier, 0, OF, [late])
        await give_up(requests, earlier, [late])
        assert state(target, late) == "Ongoing", "it is the later one's to look after"
        target.time_out(target.transactions[task_id(NAME, 0, 1)])
        await commit(requests, later, 0, OF, [await written(requests, 0)])
        assert (await claim(requests, NAME)).standing.batch == 0
        assert visible(target) == ["row"]

    asyncio.run(run())


def test_a_transaction_that_timed_out_before_the_decision_stops_it(target, requests):
    async def run():
        have = await claim(requests, NAME)
        parts = [await written(requests, 0, task) for task in range(2)]
        target.time_out(target.transactions[task_id(NAME, 1, 0)])
        with pytest.raises(WriteFailed, match=r"task 1 is no longer open: it timed out \(kafka.transaction.timeout.ms"):
            await commit(requests, have, 0, OF, parts)
        await give_up(requests, have, parts)
        assert (await claim(requests, NAME)).standing == Standing()
        assert visible(target) == []
        target.tells_states = False
        have = await claim(requests, NAME)
        parts = [await written(requests, 0, task) for task in range(2)]
        target.time_out(target.transactions[task_id(NAME, 1, 0)])
        with pytest.raises(WriteFailed, match="batch 0 of load: the transactions of tasks 1 timed out"):
            await commit(requests, have, 0, OF, parts)

    asyncio.run(run())


def test_giving_up_leaves_what_was_decided_and_aborts_the_rest(target, requests):
    async def run():
        have = await claim(requests, NAME)
        part = await written(requests, 0)
        await give_up(requests, have, [part])
        assert state(target, part).endswith("Abort")
        have = await claim(requests, NAME)
        decided, stray = await written(requests, 0), await written(requests, 0, attempt=2)
        await commit(requests, have, 0, OF, [decided])
        assert state(target, stray) == "Empty", "a superfluous attempt is ended before readers wait for it"
        await give_up(requests, have, [decided])
        assert state(target, decided).endswith("Commit")

    asyncio.run(run())


@pytest.mark.parametrize(
    "step",
    [
        lambda requests, part: give_up(requests, Claim(NAME, Owner(9, 9)), [part]),
        lambda requests, part: abort_parts(requests, NAME, [part]),
    ],
)
def test_other_faults_are_told(target, requests, step):
    def fail(*_):
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    async def run():
        part = await written(requests, 0)
        target.end = target.take = target.note = fail
        with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
            await step(requests, part)
        with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
            await commit(requests, Claim(NAME, Owner(9, 9)), 0, OF, [])

    asyncio.run(run())


def test_only_transactions_of_the_name_are_ended(target, requests):
    async def run():
        names = [
            task_id(NAME, 0, 0),
            task_id(NAME, 11, 2),
            task_id("other", 0, 0),
            f"{NAME}-task-x",
            task_id("a-load", 0, 0),
        ]
        for name in names:
            await requests.write(name, await requests.take(name), [1])
        await abort_open(requests, NAME, [names[1]])
        assert [target.transactions[name].state == "Ongoing" for name in names] == [False, True, True, True, True]

    asyncio.run(run())
