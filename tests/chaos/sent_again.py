"""Notes the records that librdkafka may send again by itself, although they may be in the log and the producer wants no retries.

If a broker leaves Metadata, librdkafka 2.16 fails the requests that this broker has not answered ("Broker handle destroyed"), takes their
records for not written, and sends them to the next leader. A record that the broker had written before it was killed or paused is then there
twice, with Kafka's brokers as with ours. Only the library knows when: its debug log names the partition, and not the records. So all of the
partition that it has not reported by then may be meant.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import KafkaError, Message

from tests.support.history import Place, Row, Write

SENT_AGAIN = re.compile(r"(\S+) \[(\d+)\]: MessageSet with .*: Local: Broker handle destroyed")

Report = Callable[[KafkaError | None, Message], None]


class SentAgain:
    """What the library writes its debug log to, in the thread that gets its reports."""

    def __init__(self) -> None:
        self._unreported: dict[Place, set[bytes]] = defaultdict(set)
        self.values: set[bytes] = set()

    def sending(self, place: Place, value: bytes, note: Report) -> Report:
        """Call this before the library gets a record, and have it report to the result."""
        unreported = self._unreported[place]
        unreported.add(value)

        def reported(error: KafkaError | None, message: Message) -> None:
            unreported.discard(value)
            note(error, message)

        return reported

    def log(self, level: int, text: str, *arguments: object) -> None:
        """As a logger has it."""
        found = SENT_AGAIN.search(text % arguments)
        if found is not None:
            self.values |= self._unreported[found[1], int(found[2])]

    def without_them(
        self, final: Mapping[Place, Sequence[Row]], writes: Mapping[bytes, Write]
    ) -> dict[Place, list[Row]]:
        """All records, but each that may have been sent again once: where it was acknowledged, or else where it is first."""
        kept: dict[Place, list[Row]] = {}
        for place, rows in final.items():
            where = {value: offset for offset, value in reversed(rows) if value in self.values}
            where |= {value: at for value in where if (at := writes[value].offset) is not None}
            kept[place] = [(offset, value) for offset, value in rows if where.get(value, offset) == offset]
        return kept
