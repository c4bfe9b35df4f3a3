"""Computes where a group continues after `kafka-consumer-groups --reset-offsets`."""

import argparse
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from horolog.client.values.types import EARLIEST, LATEST
from horolog.client.wire.offsets import ends
from horolog.commands.errors import UsageError

if TYPE_CHECKING:
    from horolog.client.values.types import TopicPartition
    from horolog.client.wire.client import Client

_PERIOD = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,3})\d*)?S)?)?", re.ASCII | re.IGNORECASE
)


async def new_offsets(
    client: "Client",
    places: "Sequence[TopicPartition]",
    committed: "Mapping[TopicPartition, int]",
    arguments: argparse.Namespace,
    now_ms: int,
) -> "dict[TopicPartition, int]":
    """The new offsets, within each partition's bounds; partitions that the choice does not cover are left out. Raises UsageError."""
    first = await ends(client, dict.fromkeys(places, EARLIEST))
    last = await ends(client, dict.fromkeys(places, LATEST))
    if arguments.to_datetime is not None or arguments.by_duration is not None:
        from horolog.client.moments.lagging import targets

        time_ms = (
            moment_of(arguments.to_datetime) if arguments.to_datetime else now_ms - period_ms(arguments.by_duration)
        )
        return {place: offset for place, (offset, _) in (await targets(client, places, time_ms)).items()}
    if arguments.where == "to-earliest":
        wanted = dict(first)
    elif arguments.where == "to-latest":
        wanted = dict(last)
    elif arguments.where == "to-current":
        wanted = {place: committed.get(place, last[place]) for place in places}
    elif arguments.to_offset is not None:
        wanted = dict.fromkeys(places, arguments.to_offset)
    elif arguments.shift_by is not None:
        wanted = {place: committed[place] + arguments.shift_by for place in places if place in committed}
    else:
        raise UsageError("--reset-offsets needs a new position", "use --to-earliest, --to-datetime or similar")
    return {place: min(max(offset, first[place]), last[place]) for place, offset in wanted.items()}


def moment_of(text: str) -> int:
    """`2026-11-17T10:05:00.000`, in UTC unless an offset is given, as in Kafka."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--to-datetime {text}: expected YYYY-MM-DDTHH:mm:SS.sss") from error
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def period_ms(text: str) -> int:
    """`PT30M`, `P1DT2H`."""
    found = _PERIOD.fullmatch(text)
    if found is None or not any(found.groups()):
        raise UsageError(f"--by-duration {text}: expected a duration in the form PnDTnHnMnS")
    days, hours, minutes, seconds = (int(number or 0) for number in found.groups()[:4])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + int((found[5] or "0").ljust(3, "0"))
