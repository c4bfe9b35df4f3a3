"""The brokers of a cluster: addresses, what each leads, and what its HTTP port reports."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from horolog.client.values.types import TopicPartition
from horolog.console.pulse import BrokerAnswer, HourSample
from horolog.console.recent import recent

if TYPE_CHECKING:
    from horolog.client.segments.segments_look import HttpAccess
    from horolog.client.wire.cluster_view import ClusterView
    from horolog.console.visits import Visit

DOORS_SECONDS = 20.0
SHOWN_AT_MOST = 100


class Doors(NamedTuple):
    """The HTTP ports of a cluster, once each, and of each broker where the brokers report them."""

    all: "tuple[HttpAccess, ...]" = ()
    of_broker: Mapping[int, "HttpAccess"] = {}


class Hour(NamedTuple):
    """The newest answers and the last hour; `why`: the reason why there are none."""

    answers: Sequence[BrokerAnswer] = ()
    samples: Sequence[HourSample] = ()
    why: str = ""
    doors: Doors = Doors()

    def answer_of(self, number: int) -> BrokerAnswer | None:
        """The newest answer of a broker; workers share one."""
        door = self.doors.of_broker.get(number)
        return next((one for one in self.answers if one.door == door), None)


class BrokerRow(NamedTuple):
    number: int
    address: str
    rack: str
    is_controller: bool
    leads: int


class BrokerList(NamedTuple):
    rows: list[BrokerRow]
    answers: list[BrokerAnswer]
    """Those of HTTP ports that reported metrics: one for each process, workers share one."""
    left_out: int


async def hour_of(visit: "Visit") -> Hour:
    doors, why = await _doors(visit)
    if why:
        return Hour(why=why)
    pulse = await visit.desk.pulses.of(visit.cluster.name, doors.all, visit.desk.clock)
    return Hour(pulse.answers, list(pulse.samples), doors=doors)


async def _doors(visit: "Visit") -> tuple[Doors, str]:
    """The HTTP ports of all brokers, by the rights of this user; else the reason."""

    async def ask() -> tuple[Doors, str]:
        from horolog.client.admin.admin_configs import ConfigAdmin
        from horolog.client.segments.segments_look import KAFKA, LISTEN, NO_PORT, HttpAccess, NoSegments, find_each

        why = {KAFKA: "Kafka does not report it", NO_PORT: f"the broker has no HTTP port ({LISTEN})"}
        given = visit.cluster.http or HttpAccess()
        if given.url is not None:
            return Doors((given,)), ""
        try:
            found = await find_each(ConfigAdmin(visit.client), given)
            return Doors(tuple(dict.fromkeys(found.values())), found), ""
        except NoSegments as error:
            return Doors(), why.get(str(error), str(error))

    return await recent(visit.client).get("doors", DOORS_SECONDS, ask)


def brokers_of(
    view: "ClusterView", leaders: Mapping[TopicPartition, int], answers: Sequence[BrokerAnswer]
) -> BrokerList:
    counts: dict[int, int] = {}
    for leader in leaders.values():
        counts[leader] = counts.get(leader, 0) + 1
    rows = [
        BrokerRow(
            number, f"{node.host}:{node.port}", node.rack or "", number == view.controller_id, counts.get(number, 0)
        )
        for number, node in sorted(view.nodes.items())
    ]
    known = [one for one in answers if one.scrape is not None]
    return BrokerList(rows[:SHOWN_AT_MOST], known, max(0, len(rows) - SHOWN_AT_MOST))
