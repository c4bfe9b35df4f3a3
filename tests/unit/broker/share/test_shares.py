"""The parts of a broker for share groups."""

from tests.support.share_broker import share_broker


async def test_a_broker_has_the_parts_together():
    async with share_broker() as broker:
        shares = broker.broker.shares
        assert repr(shares) == f"<Shares {shares.states!r}, {shares.leader!r}>"
