"""Writes data frames to topics, each record with its own time.

A task sends its rows through an idempotent producer, so that what is sent again within the task is written once; a task that Spark runs
again writes again, as with Spark's own connector. A record that the broker refuses (for its time, say) fails the task with the
broker's reason, or goes to the `rejectedTopic`: that record, not its neighbours. There it has its own key, value and headers, the
present time, and these headers more:

    horolog.rejected.reason     the broker's words
    horolog.rejected.topic      where it was to go
    horolog.rejected.timestamp  its own time, in milliseconds
"""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from client.errors import KafkaError, RecordRefused
from client.producer import Producer
from client.types import Sent
from pipeline.options import WriteOptions
from pipeline.rows import Row, check_columns, rows_of
from protocol.errors import ErrorCode

REASON, TOPIC, TIMESTAMP = b"horolog.rejected.reason", b"horolog.rejected.topic", b"horolog.rejected.timestamp"
_REFUSALS = frozenset({ErrorCode.INVALID_TIMESTAMP, ErrorCode.INVALID_RECORD})


class WriteFailed(Exception):
    """A record was not written; the message has the broker's reason."""


@dataclass
class Written(WriterCommitMessage):
    """What one task has written."""

    records: int
    rejected: int


class BatchWriter(DataSourceArrowWriter):
    """Writes a data frame once."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic)
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return asyncio.run(_Writing(self.options).write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        say_what_was_written(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes one micro-batch after the other."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic)
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return asyncio.run(_Writing(self.options).write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002 - Spark's
        say_what_was_written(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What was written stays; the batch comes again."""


def say_what_was_written(messages: list[WriterCommitMessage | None]) -> None:
    """One line by the driver, if anything was rejected: nobody asked for that to happen silently."""
    tasks = [message for message in messages if isinstance(message, Written)]
    rejected = sum(task.rejected for task in tasks)
    if rejected:
        records = sum(task.records for task in tasks)
        sys.stderr.write(
            f"horolog: {records} records written, {rejected} more were refused and are in the rejectedTopic\n"
        )


class _Writing:
    """One task's rows on their way."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._topics: set[str] = set()
        self._records = 0
        self._rejected = 0

    async def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        options = self._options
        producer = Producer(
            options.bootstrap,
            compression=options.compression,
            linger_ms=options.linger_ms,
            batch_bytes=options.batch_bytes,
            delivery_timeout_ms=options.delivery_timeout_ms,
            client_id=options.client_id,
            request_timeout_ms=options.request_timeout_ms,
        )
        async with producer:
            sent: list[tuple[Row, asyncio.Future[Sent]]] = []
            for batch in batches:
                sending = [(row, await self._send(producer, row)) for row in rows_of(batch, options.topic)]
                await self._settle(producer, sent)
                sent = sending
            await producer.flush()
            await self._settle(producer, sent)
        return Written(self._records, self._rejected)

    async def _send(self, producer: Producer, row: Row) -> "asyncio.Future[Sent]":
        if row.topic not in self._topics:
            await producer.client.topic(row.topic, create=True)
            self._topics.add(row.topic)
        return await producer.send(row.topic, row.value, row.key, row.headers, row.timestamp_ms, row.partition)

    async def _settle(self, producer: Producer, sent: list[tuple[Row, "asyncio.Future[Sent]"]]) -> None:
        """Wait for what became of records, and see to those that were refused."""
        if not sent:
            return
        await asyncio.wait([future for _, future in sent])
        refused = [(row, error) for row, future in sent if (error := future.exception()) is not None]
        self._records += len(sent) - len(refused)
        again = [await self._send(producer, self._rejection(row, error)) for row, error in refused]
        if again:
            await producer.flush()
        for (row, _), future in zip(refused, again, strict=True):
            error = future.exception()
            if error is not None:
                raise WriteFailed(
                    f"topic {self._options.rejected_topic}, for a record of {row.topic}: {error}"
                ) from error
        self._rejected += len(refused)

    def _rejection(self, row: Row, error: BaseException) -> Row:
        """The record for the rejected topic; WriteFailed if there is none, or if this is no matter of the record."""
        reason = error.message if isinstance(error, KafkaError) else str(error)
        rejected_topic = self._options.rejected_topic
        if rejected_topic is None or not isinstance(error, RecordRefused) or error.code not in _REFUSALS:
            code = error.code.name if isinstance(error, KafkaError) else type(error).__name__
            raise WriteFailed(f"topic {row.topic}, key {row.key!r}: {code}: {reason}") from error
        said = [(REASON, reason.encode()), (TOPIC, row.topic.encode())]
        if row.timestamp_ms is not None:
            said.append((TIMESTAMP, str(row.timestamp_ms).encode()))
        return Row(rejected_topic, row.key, row.value, (*row.headers, *said), None, None)
