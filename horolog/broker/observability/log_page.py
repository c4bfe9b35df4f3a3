"""What the partitions of a topic hold, segment by segment, over HTTP: `/log/TOPIC`.

    ?partition=0,3        only these partitions
    ?at=MS,MS             and where the first record at or after each of these times lies, at most `TIMES_AT_MOST` of them

The answer is one JSON object, specified in docs/operations.md. It is made of what the broker has in memory and of indexes; no record is
read, and requests of clients are served between its pieces, each of which takes a millisecond or two, or one index to load.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from horolog.broker.cluster.topic import Topic
from horolog.broker.log.partition import Inventory, Partition
from horolog.broker.observability.http_server import JSON_TYPE, LOG_PREFIX, HttpResponse, refusal
from horolog.broker.observability.watched import Watched
from horolog.protocol.records.record import MAX_INT64
from horolog.protocol.uuids import show_uuid

TIMES_AT_MOST = 1000
PARTITIONS_AT_MOST = 1000
PIECE_SECONDS = 0.002
PIECE_PARTS = 200
"""Segments and times of one piece, whatever the clock says."""
_DIGITS_AT_MOST = 19


class LogQuery(NamedTuple):
    """What the query asks for; None: all partitions."""

    partitions: tuple[int, ...] | None
    times: tuple[int, ...]


def answer(broker: Watched, path: str, query: str) -> HttpResponse:
    name = unquote(path.removeprefix(LOG_PREFIX))
    topic = broker.cluster.topics.get(name)
    if topic is None:
        return refusal(HTTPStatus.NOT_FOUND, f"there is no topic {name[:249]!r}")
    try:
        asked = read_query(query)
    except ValueError as error:
        return refusal(HTTPStatus.BAD_REQUEST, str(error))
    missing = [index for index in asked.partitions or () if not topic.has(index)]
    if missing:
        return refusal(HTTPStatus.NOT_FOUND, f"topic {name} has no partition {missing[0]}")
    text = _texts(topic, asked, broker.clock.wall_ms())
    return HttpResponse(HTTPStatus.OK, JSON_TYPE, _pieces(text, broker.clock.monotonic))


def read_query(query: str) -> LogQuery:
    """Raises ValueError with a sentence."""
    try:
        words = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=3)
    except ValueError:
        raise ValueError("the query is ?at=MS,MS&partition=N,N") from None
    given = dict(words)
    unknown = [name for name, _ in words if name not in {"at", "partition"}]
    if unknown:
        raise ValueError(f"{unknown[0][:60]!r} is not a parameter: at and partition are")
    if len(given) < len(words):
        raise ValueError("at and partition can each be given once")
    partitions = None
    if "partition" in given:
        partitions = tuple(sorted(set(_numbers("partition", given["partition"], PARTITIONS_AT_MOST, 2**31 - 1))))
    return LogQuery(partitions, _numbers("at", given["at"], TIMES_AT_MOST, MAX_INT64) if "at" in given else ())


def _numbers(name: str, text: str, at_most: int, largest: int) -> tuple[int, ...]:
    words = text.split(",", at_most)
    if len(words) > at_most:
        raise ValueError(f"{name} takes at most {at_most} numbers")
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) <= _DIGITS_AT_MOST and int(word) <= largest):
            raise ValueError(f"{name}={word[:30]}: expected whole numbers up to {largest}, separated by commas")
    return tuple(map(int, words))


def _pieces(texts: Iterator[str], monotonic: Callable[[], float]) -> Iterator[bytes]:
    """Join the texts to pieces, each as large as may be made without a pause."""
    piece: list[str] = []
    began = monotonic()
    for text in texts:
        piece.append(text)
        if len(piece) >= PIECE_PARTS or monotonic() - began >= PIECE_SECONDS:
            yield "".join(piece).encode()
            piece.clear()
            began = monotonic()
    yield "".join(piece).encode()


def _texts(topic: Topic, asked: LogQuery, now_ms: int) -> Iterator[str]:
    head = {"topic": topic.name, "id": show_uuid(topic.id), "now_ms": now_ms, "partition_count": topic.partition_count}
    yield json.dumps(head)[:-1] + ', "partitions": ['
    wanted = range(topic.partition_count) if asked.partitions is None else asked.partitions
    comma = ""
    for index in wanted:
        partition = topic.find(index)
        if isinstance(partition, Partition):
            yield comma
            yield from _partition(partition, asked.times, now_ms)
            comma = ", "
    yield "]}\n"


def _partition(partition: Partition, times: Sequence[int], now_ms: int) -> Iterator[str]:
    fault = partition.condition.fault
    if fault is not None:
        yield json.dumps({"partition": partition.index, "error": f"offline: {fault}"})
        return
    inventory = Inventory(partition)
    head = {
        "partition": partition.index,
        "log_start_offset": inventory.log_start_offset,
        "high_watermark": inventory.high_watermark,
    }
    yield json.dumps(head)[:-1] + ', "segments": ['
    comma = ""
    for held in inventory.segments(now_ms):
        yield comma + json.dumps(held._asdict())
        comma = ", "
    yield "]"
    if times:
        yield ', "at": ['
        for number, timestamp in enumerate(times):
            yield ("" if number == 0 else ", ") + json.dumps(inventory.before(timestamp))
        yield "]"
    yield "}"
