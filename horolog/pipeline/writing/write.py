"""Writes data frames to topics, each record with its own time.

A record that the broker refuses (for its time, say) fails the task with the broker's reason, or goes to the `rejectedTopic` without
its neighbours. There it has its own key, value and headers, the present time, and these additional headers:

    horolog.rejected.reason     the broker's words
    horolog.rejected.topic      where it was to go
    horolog.rejected.timestamp  its own time, in milliseconds

A batch that a task retries is written once (`sending`); a task that Spark runs again writes again, as with Spark's own connector, unless
its rows are in a transaction (`transactional=true`, `exactly_once`).
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from horolog.base.readable import counted
from horolog.client.wire.client import Client
from horolog.pipeline.options.options import WriteOptions
from horolog.pipeline.options.reaching import client_of, require_broker
from horolog.pipeline.options.target_topics import partitions_of_target, require_topic
from horolog.pipeline.spark.notes import say
from horolog.pipeline.spark.short_errors import short_errors
from horolog.pipeline.spark.spark_versions import arrow_writer_of_streams
from horolog.pipeline.spark.workers import begin_task
from horolog.pipeline.writing.exactly_once import Claim, Part, WriteFailed
from horolog.pipeline.writing.outgoing import Outgoing, by_partition
from horolog.pipeline.writing.rows import Rows, anywhere, check_columns, rows_of
from horolog.pipeline.writing.sending import Refused, Sending
from horolog.pipeline.writing.tally import Tally
from horolog.pipeline.writing.transacting import OpenTransaction
from horolog.pipeline.writing.transactional import Run, abort_batch, claim_name, commit_batch, run_of_task
from horolog.protocol.records.record import Header

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
else:
    DataSourceStreamArrowWriter = arrow_writer_of_streams()

__all__ = ["BatchWriter", "StreamWriter", "TaskCommit", "WriteFailed"]

REASON, TOPIC, TIMESTAMP = b"horolog.rejected.reason", b"horolog.rejected.topic", b"horolog.rejected.timestamp"


@dataclass
class TaskCommit(WriterCommitMessage):
    """What one task has written."""

    records: int
    rejected: int
    part: Part | None = None
    run: Run | None = None
    """Of task 0, what the driver has to know of all of them."""


class BatchWriter(DataSourceArrowWriter):
    """Writes a data frame once."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic)
        require_target(options)
        self.options = options
        self.claim = claim_name(options)

    @short_errors()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskCommit:
        return asyncio.run(_write(self.options, iterator, self.claim))

    @short_errors()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _commit(self.options, messages)

    @short_errors()
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        if self.claim is not None:
            abort_batch(self.options, self.claim, parts_of(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes one micro-batch. Spark creates a writer to write each batch, and another one to end it, which claims nothing."""

    def __init__(self, options: WriteOptions, schema: StructType, *, claims: bool = True) -> None:
        check_columns(schema, options.topic)
        require_target(options)
        self.options = options
        self.claim = claim_name(options) if claims else None

    @short_errors()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskCommit:
        return asyncio.run(_write(self.options, iterator, self.claim))

    @short_errors()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002 - the tasks know it
        _commit(self.options, messages)

    @short_errors()
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002
        """Spark will repeat the batch. What was written stays, except in transactions."""
        run = run_of(messages)
        if run is not None:
            abort_batch(self.options, run.claim, parts_of(messages))


def require_target(options: WriteOptions) -> None:
    """Check that a broker answers, and the topic, before tasks begin; tasks look for topics that a column names."""

    async def ask(client: Client) -> None:
        if options.topic is not None and not options.create_topics:
            await require_topic(client, options.topic)

    require_broker(options.bootstrap, options, ask)


def _commit(options: WriteOptions, messages: list[WriterCommitMessage | None]) -> None:
    run = run_of(messages)
    if run is not None:
        commit_batch(options, run, parts_of(messages))
    say_what_was_written(messages)


def run_of(messages: list[WriterCommitMessage | None]) -> Run | None:
    return next((each.run for each in messages if isinstance(each, TaskCommit) and each.run is not None), None)


def parts_of(messages: list[WriterCommitMessage | None]) -> list[Part]:
    return [each.part for each in messages if isinstance(each, TaskCommit) and each.part is not None]


def say_what_was_written(messages: list[WriterCommitMessage | None]) -> None:
    """One line by the driver, if anything was rejected."""
    tasks = [message for message in messages if isinstance(message, TaskCommit)]
    rejected = sum(task.rejected for task in tasks)
    if rejected:
        records = sum(task.records for task in tasks)
        say(f"horolog: {counted(records, 'record')} written, {rejected:,} refused and written to the rejectedTopic")


async def _write(options: WriteOptions, batches: Iterator[pa.RecordBatch], claim: Claim | None) -> TaskCommit:
    begin_task()
    if claim is None:
        async with client_of(options.bootstrap, options) as client:
            return await _Writing(client, options).write(batches)
    run = run_of_task(options, claim)
    said = run if run.task == 0 else None
    if not run.is_to_be_written:
        return TaskCommit(0, 0, run=said)
    async with client_of(options.bootstrap, options) as client:
        transaction = OpenTransaction(client, run.transactional_id, run.timeout_ms)
        tally = Tally()
        try:
            written = await _Writing(client, options, transaction).write(tally.of(batches))
            if tally.rows and run.place is not None:
                await transaction.note(run.place, run.note(transaction.owner))
        except BaseException:
            await transaction.abort()
            raise
    if tally.rows:
        written.part = Part(run.task, run.attempt, transaction.owner, tally.rows, tally.digest)
    written.run = said
    return written


class _Writing:
    """Sends one task's rows: while one Arrow batch is encoded, the one before is in flight."""

    def __init__(self, client: Client, options: WriteOptions, transaction: OpenTransaction | None = None) -> None:
        self._client = client
        self._options = options
        self._sending = Sending(client, options, transaction)
        self._under_way: list[asyncio.Task[list[Refused]]] = []
        self._rejected = 0

    async def write(self, batches: Iterator[pa.RecordBatch]) -> TaskCommit:
        await self._sending.begin()
        try:
            for batch in batches:
                started = [
                    task
                    for rows in rows_of(batch, self._options.topic, self._now_ms())
                    for task in await self._start(rows)
                ]
                await self._finish()
                self._under_way = started
            await self._finish()
        finally:
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)
        return TaskCommit(self._sending.written - self._rejected, self._rejected)

    def _now_ms(self) -> int:
        return self._client.clock.wall_ms()

    async def _start(self, rows: Rows) -> list["asyncio.Task[list[Refused]]"]:
        """Begin to send the rows of one topic."""
        create = self._options.create_topics or rows.topic == self._options.rejected_topic
        partitions = await partitions_of_target(self._client, rows.topic, create=create)
        targets = by_partition(rows.topic, rows.records, rows.partitions, partitions, self._client.random)
        tasks = [asyncio.create_task(self._sending.send(*target)) for target in targets.items()]
        await asyncio.sleep(0)
        return tasks

    async def _finish(self) -> None:
        """Wait for the batches in flight, and handle refused records."""
        results = await asyncio.gather(*self._under_way)
        self._under_way = []
        refused = [one for each in results for one in each]
        if not refused:
            return
        rejected_topic = self._options.rejected_topic
        if rejected_topic is None:
            first = refused[0]
            key = first.record.keys[0].as_py()
            raise WriteFailed(f"topic {first.topic}, key {key!r}: {first.code.name}: {first.reason}")
        again = Rows(rejected_topic, rejection(refused, self._now_ms()), anywhere(len(refused)))
        for task in await self._start(again):
            for one in await task:
                raise WriteFailed(
                    f"topic {rejected_topic}, for a record of {refused[0].topic}: {one.code.name}: {one.reason}"
                )
        self._rejected += len(refused)


def rejection(refused: list[Refused], now_ms: int) -> Outgoing:
    """The records for the rejected topic."""
    keys = pa.concat_arrays([one.record.keys for one in refused])
    values = pa.concat_arrays([one.record.values for one in refused])
    return Outgoing(keys, values, np.full(len(refused), now_ms, np.int64), [_said(one) for one in refused])


def _said(one: Refused) -> tuple[Header, ...]:
    own = one.record.headers[0] if one.record.headers is not None else ()
    time = str(int(one.record.times_ms[0])).encode()
    return (*own, (REASON, one.reason.encode()), (TOPIC, one.topic.encode()), (TIMESTAMP, time))
