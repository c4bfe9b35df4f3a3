"""The page Transactions: the transactional ids and their states, the producers of a topic, and a way to abort what hangs."""

from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.console.changes import Form, Input, Plan, command_line
from horolog.console.moment import places_of
from horolog.console.visits import Refused, Visit, sentence_of

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.admin.admin_cluster import ActiveProducer, TransactionDescription, TransactionListing

DESCRIBED_AT_MOST = 50
ROWS_AT_MOST = 500
PARTITIONS_AT_MOST = 64
OPEN = "Ongoing"


class ProducerRow(NamedTuple):
    place: TopicPartition
    producer: "ActiveProducer"

    @property
    def is_open(self) -> bool:
        return self.producer.transaction_start_offset >= 0


class TransactionRow(NamedTuple):
    listing: "TransactionListing"
    description: "TransactionDescription | None"
    """Of open ones."""


async def page(visit: Visit) -> Response:
    topic = visit.text("topic")
    producers: list[ProducerRow] = []
    with visit.reading("topic", "partition"):
        producers = await _producers(visit, topic) if topic else []
    failure, rows, left_out = "", [], 0
    try:
        listed = await visit.admin.list_transactions()
        rows = await _rows(visit, listed[:ROWS_AT_MOST])
        left_out = max(0, len(listed) - ROWS_AT_MOST)
    except KafkaError as error:
        failure = sentence_of(visit, error)[0]
    values = {"topic": topic, "producers": producers, "rows": rows, "failure": failure, "left_out": left_out}
    return visit.page("transactions.html", **values)


async def _rows(visit: Visit, listed: "list[TransactionListing]") -> list[TransactionRow]:
    """Open transactions first, with their partitions."""
    described = [one.transactional_id for one in listed if one.state == OPEN][:DESCRIBED_AT_MOST]
    found = await visit.admin.describe_transactions(described)
    rows = [TransactionRow(one, found.get(one.transactional_id)) for one in listed]
    return sorted(rows, key=lambda row: row.listing.state != OPEN)


async def _producers(visit: Visit, topic: str) -> list[ProducerRow]:
    places = (await places_of(visit, topic))[:PARTITIONS_AT_MOST]
    rows = [ProducerRow(place, one) for place in places for one in await visit.admin.describe_producers(place)]
    return sorted(rows, key=lambda row: not row.is_open)[:ROWS_AT_MOST]


async def abort(visit: Visit) -> Form:
    topic = visit.text("topic")
    partition, start = visit.number("partition", 0), visit.number("start", 0, most=2**62)
    place = TopicPartition(topic, partition)
    if partition not in (await visit.topic(topic)).partitions:
        raise Refused(f"topic {topic} has no partition {partition}", 404)
    known = await visit.admin.describe_producers(place)
    found = next((one for one in known if one.transaction_start_offset == start), None)
    if found is None:
        raise Refused(f"no transaction of {place} begins at offset {start}; it may be over", 404)
    inputs = (
        Input("topic", "Topic", topic, is_fixed=True),
        Input("partition", "Partition", str(partition), is_fixed=True),
        Input("start", "Begins at offset", str(start), is_fixed=True),
    )

    async def plan() -> Plan:
        async def end(admin: "Admin") -> None:
            await admin.abort_transaction(place, found)

        words = ("transactions", "abort", topic, str(partition), "--start-offset", str(start), "--yes")
        return Plan(
            (f"aborts the transaction of producer {found.producer_id} in {place}",),
            command_line(visit.cluster.bootstrap, *words),
            end,
            visit.link("/transactions", topic=topic),
            (
                "consumers with read_committed never read its records in this partition; its producer may still be alive",
            ),
            confirm=topic,
            basis=f"{found.producer_id} {found.epoch}",
        )

    return Form("Abort a transaction", inputs, plan, "Abort the transaction")
