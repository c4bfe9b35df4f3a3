"""What members of share groups do is counted."""

from horolog.broker.observability import share_metrics
from tests.support.share_broker import Member, initialize, put, share_broker


async def test_records_sessions_and_acknowledgements_are_counted():
    async with share_broker() as broker:
        broker.topic("t", 1)
        await initialize(broker)
        await put(broker, 5)
        ann = Member(broker)
        await ann.fetch()
        await ann.acknowledge((0, 1, [1]), (2, 2, [3]))
        found = {family.name: list(samples) for family, samples in share_metrics.collect(broker.broker.shares.leader)}
        assert found.keys() == {one.name for one in share_metrics.FAMILIES}
        assert found["share_in_flight_records"] == [((), 2)]
        assert found["share_sessions"] == [((), 1)]
        counts = {labels[0]: count for labels, count in found["share_acknowledged_records_total"]}
        assert counts == {"gap": 0, "accept": 2, "release": 0, "reject": 1, "renew": 0}
