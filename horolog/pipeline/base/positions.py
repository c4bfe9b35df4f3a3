"""Where reading begins and ends: the options, and the ranges of offsets that they resolve to.

A time stands for the offset of the first record at or after it, at the end as at the start, in each partition by itself. A
partition without such a record is read up to its end, or from its end, which is nothing; or that is an error, as the strategy says.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC
from itertools import pairwise
from typing import NamedTuple, Protocol

from horolog.client.values.times import TimeTextError, format_time, parse_time
from horolog.client.values.types import TopicPartition

EARLIEST, LATEST = -2, -1
"""As the JSON of the options has them, and the protocol."""


LARGEST_OFFSET, LARGEST_PARTITION = 2**63 - 1, 2**31 - 1
_MOST_DIGITS = 19
_SHOWN = 40
"""So many characters of a value that is too long to be good are in its error."""


class OptionError(ValueError):
    """An option has an invalid value, or options contradict each other."""


class DataLoss(Exception):
    """Requested offsets are gone; `failOnDataLoss=false` reads the rest."""


class Position(NamedTuple):
    """A place in a partition: an offset (EARLIEST and LATEST among them), or a time in milliseconds."""

    value: int
    is_time: bool = False


Positions = Position | Mapping[TopicPartition, Position]
"""One for all partitions, or one for each."""


class OffsetRange(NamedTuple):
    """The offsets from `start` up to but not including `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


class Log(Protocol):
    """What a reader asks about partitions, of a broker or of files."""

    def ends(self, partitions: Iterable[TopicPartition], which: int) -> dict[TopicPartition, int]: ...
    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]: ...


def number_in(text: str, most: int = LARGEST_OFFSET) -> int | None:
    """The number that is there in plain digits; None if there is anything else, or more."""
    digits = text.strip()
    if not digits.isascii() or not digits.isdigit() or len(digits) > _MOST_DIGITS:
        return None
    number = int(digits)
    return number if number <= most else None


def parse_moment(option: str, text: str, now_ms: int) -> Position:
    """A time: digits are milliseconds, as Spark's connector has it; everything else is the command line's grammar, in UTC."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        number = number_in(text)
        if number is None:
            raise OptionError(f"{option}: {text[:_SHOWN]!r} is outside the times that a record can have")
        return Position(number, is_time=True)
    try:
        return Position(max(0, parse_time(text, now_ms=now_ms, zone=UTC).ms), is_time=True)
    except TimeTextError as error:
        raise OptionError(f"{option}: {error}") from error


def show_position(position: Position) -> str:
    """As a user reads it: a time with its date."""
    return format_time(position.value, UTC) if position.is_time else str(position.value)


def parse_offsets(option: str, text: str, *, unwanted: str) -> Positions:
    """`earliest`, `latest` or {"topic": {"0": 23, "1": -1}}; `unwanted` is the one that would leave nothing to read."""
    words = {"earliest": EARLIEST, "latest": LATEST}
    word = text.strip().lower()
    if word == unwanted or (unwanted and word in words and words[word] == words[unwanted]):
        raise OptionError(f"{option}: {word!r} would leave nothing to read")
    if word in words:
        return Position(words[word])
    numbers = _numbers(option, text)
    for partition, number in numbers.items():
        if not EARLIEST <= number <= LARGEST_OFFSET or (unwanted and number == words[unwanted]):
            raise OptionError(f"{option}: {number} cannot be used as an offset of {partition}")
    return {partition: Position(number) for partition, number in numbers.items()}


def parse_times(option: str, text: str, now_ms: int) -> Positions:
    """{"topic": {"0": 1700000000000, "1": "2h"}}."""
    return {
        partition: parse_moment(option, str(value), now_ms) for partition, value in _by_partition(option, text).items()
    }


def parse_assign(option: str, text: str) -> list[TopicPartition]:
    """{"topic": [0, 1]}."""
    partitions: list[TopicPartition] = []
    for topic, indexes in _json(option, text).items():
        numbers = indexes if isinstance(indexes, list) else []
        if not numbers or any(type(number) is not int or not 0 <= number <= LARGEST_PARTITION for number in numbers):
            raise OptionError(f'{option}: {text!r} does not look like {{"topicA":[0,1],"topicB":[2,4]}}')
        partitions += [TopicPartition(topic, number) for number in numbers]
    return partitions


def _json(option: str, text: str) -> dict[str, object]:
    try:
        loaded = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{option}: {text!r} is not JSON: {error}") from error
    if not isinstance(loaded, dict):
        raise OptionError(f"{option}: {text!r} is not a JSON object of topics")
    return loaded


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON; a name that is there twice would have two meanings, of which a parser keeps one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is given twice")
    return found


def _by_partition(option: str, text: str) -> dict[TopicPartition, object]:
    found: dict[TopicPartition, object] = {}
    for topic, inner in _json(option, text).items():
        if not isinstance(inner, dict) or any(number_in(name, LARGEST_PARTITION) is None for name in inner):
            raise OptionError(f'{option}: {text!r} does not look like {{"topicA":{{"0":23,"1":-2}}}}')
        found |= {TopicPartition(topic, int(name)): value for name, value in inner.items()}
    if not found:
        raise OptionError(f"{option}: {text!r} has no partition")
    return found


def _numbers(option: str, text: str) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for partition, value in _by_partition(option, text).items():
        if type(value) is not int:
            raise OptionError(f"{option}: {value!r} is not an offset for {partition}")
        found[partition] = value
    return found


def resolve(
    log: Log, partitions: Iterable[TopicPartition], positions: Positions, option: str, *, no_match_is_error: bool
) -> dict[TopicPartition, int]:
    """The offset that each partition's position resolves to."""
    wanted = _spread(option, sorted(partitions), positions)
    times = {partition: place.value for partition, place in wanted.items() if place.is_time}
    found = log.at_times(times) if times else {}
    missing = [partition for partition in times if found.get(partition) is None]
    if missing and no_match_is_error:
        raise OptionError(
            f"{option}: {', '.join(map(str, missing))}: no record at or after the time {times[missing[0]]}"
            " (onNoMatch=latest takes the end instead)"
        )
    offsets = {partition: offset for partition, offset in found.items() if offset is not None}
    for which in (EARLIEST, LATEST):
        asked = [partition for partition, place in wanted.items() if not place.is_time and place.value == which]
        asked += missing if which == LATEST else []
        offsets |= log.ends(asked, which) if asked else {}
    offsets |= {partition: place.value for partition, place in wanted.items() if not place.is_time and place.value >= 0}
    return offsets


def _spread(option: str, partitions: list[TopicPartition], positions: Positions) -> Mapping[TopicPartition, Position]:
    if isinstance(positions, Position):
        return dict.fromkeys(partitions, positions)
    if set(positions) != set(partitions):
        said, there = (", ".join(map(str, sorted(each))) for each in (positions, partitions))
        raise OptionError(
            f"{option}: give every partition of the read, {there} (in offsets, -1 is latest and -2 earliest);"
            f" only these are given: {said}"
        )
    return positions


def split(ranges: Iterable[OffsetRange], least: int, most_records: int | None) -> list[OffsetRange]:
    """Ranges for tasks: none larger than `most_records`, and then at least about `least` of them, as Spark's connector splits."""
    parts = [one for one in ranges if one.size > 0]
    if most_records is not None:
        parts = [piece for one in parts for piece in pieces_of(one, -(-one.size // most_records))]
    total = sum(one.size for one in parts)
    if len(parts) >= least or not total:
        return parts
    return [piece for one in parts for piece in pieces_of(one, -(-least * one.size // total))]


def pieces_of(whole: OffsetRange, count: int) -> list[OffsetRange]:
    """A range in this many parts of equal size, as far as it has offsets."""
    count = min(count, whole.size)
    borders = [whole.start + whole.size * number // count for number in range(count + 1)]
    return [OffsetRange(whole.partition, *pair) for pair in pairwise(borders)]
