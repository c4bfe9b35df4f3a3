"""One transactional write as Spark carries it out: claimed and ended in the driver, written by tasks that know which batch they are of."""

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyspark import TaskContext

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import Committed, TopicPartition
from horolog.client.wire.client import Client
from horolog.pipeline.options.options import Transactional, WriteOptions
from horolog.pipeline.options.reaching import client_of
from horolog.pipeline.spark.notes import say
from horolog.pipeline.writing import exactly_once
from horolog.pipeline.writing.exactly_once import Claim, Owner, Part, WriteFailed
from horolog.pipeline.writing.transacting import Cluster

T = TypeVar("T")

QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""Local properties in which the tasks of a stream find its query and its batch."""
UNNAMED = "horolog-write-"
_NOBODY = Owner(-1, -1)


@dataclass(frozen=True, slots=True)
class Run:
    """What a task knows of its batch; `batch` is -1 if the write has no name."""

    claim: Claim
    batch: int
    of: str
    task: int
    attempt: int
    place: TopicPartition | None
    timeout_ms: int

    @property
    def transactional_id(self) -> str:
        return exactly_once.task_id(self.claim.name, self.task, self.attempt)

    @property
    def is_to_be_written(self) -> bool:
        return self.place is None or exactly_once.is_to_be_written(self.claim, self.batch, self.of, self.task)

    def note(self, owner: Owner) -> Committed:
        return exactly_once.note_of(self.batch, owner)


def claim_name(options: WriteOptions) -> Claim | None:
    """The driver's first step; None for a write without transactions."""
    wanted = options.transactional
    if wanted is None:
        return None
    if not wanted.name:
        return Claim(f"{UNNAMED}{uuid.uuid4().hex}", _NOBODY)

    async def ask(client: Client, cluster: Cluster) -> Claim:
        await client.topic(wanted.notes_topic or "", create=True)
        return await exactly_once.claim(cluster, wanted.name)

    claimed = _asked(options, ask)
    newest = claimed.standing.batch
    if wanted.batch is not None and wanted.batch < newest:
        raise WriteFailed(
            f"batchId {wanted.batch} is less than {newest}, the newest that {wanted.name} has written: the number has to increase with each write"
        )
    return claimed


def run_of_task(options: WriteOptions, claim: Claim) -> Run:
    """Asked inside of a task."""
    context, wanted = TaskContext.get(), options.transactional
    assert context is not None, "tasks run in Spark"
    assert wanted is not None, "who has a claim writes in transactions"
    batch, of = wanted.batch, ""
    if wanted.name and batch is None:
        said, query = context.getLocalProperty(BATCH), context.getLocalProperty(QUERY)
        if said is None or query is None:
            raise WriteFailed(
                "transactional=true needs the stream and the number of the batch, and Spark has not passed them"
            )
        batch, of = int(said), query
    return Run(
        claim,
        -1 if batch is None else batch,
        of,
        context.partitionId(),
        context.attemptNumber(),
        _place(wanted),
        wanted.timeout_ms,
    )


def commit_batch(options: WriteOptions, run: Run, parts: Sequence[Part]) -> None:
    """The driver's last step, when every task is done."""
    standing, name = run.claim.standing, run.claim.name
    if run.place is None:
        _asked(options, lambda _, cluster: _commit_unnamed(cluster, name, parts))
    elif run.batch > standing.batch or standing.lost:
        _asked(options, lambda _, cluster: exactly_once.commit(cluster, run.claim, run.batch, run.of, parts))
    else:
        say(f"horolog: batch {run.batch} of {name} was written before; nothing was written again")


async def _commit_unnamed(cluster: Cluster, name: str, parts: Sequence[Part]) -> None:
    await exactly_once.check_open(cluster, name, parts)
    await exactly_once.abort_open(cluster, name, [part.transactional_id(name) for part in parts])
    lost = await exactly_once.commit_parts(cluster, name, parts)
    if lost:
        rows = sum(part.rows for part in lost)
        raise WriteFailed(f"{len(lost)} of {len(parts)} transactions timed out while they were committed: {rows} rows")


def abort_batch(options: WriteOptions, claim: Claim, parts: Sequence[Part]) -> None:
    """Aborts what can be aborted now; the next claim and the transactions' timeout end the rest, so no error hides the first one."""

    async def abort(_: Client, cluster: Cluster) -> None:
        if claim.owner == _NOBODY:
            await exactly_once.abort_parts(cluster, claim.name, parts)
            await exactly_once.abort_open(cluster, claim.name)
        else:
            await exactly_once.give_up(cluster, claim, parts)

    with contextlib.suppress(KafkaError, WriteFailed):
        _asked(options, abort)


def _asked(options: WriteOptions, question: Callable[[Client, Cluster], Awaitable[T]]) -> T:
    async def ask() -> T:
        wanted = options.transactional
        assert wanted is not None
        async with client_of(options.bootstrap, options) as client:
            return await question(client, Cluster(client, _place(wanted), wanted.timeout_ms))

    return asyncio.run(ask())


def _place(wanted: Transactional) -> TopicPartition | None:
    """Where offsets are noted; the groups have different names, so one partition is enough."""
    return TopicPartition(wanted.notes_topic, 0) if wanted.notes_topic is not None else None
