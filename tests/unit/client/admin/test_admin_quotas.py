"""Quotas are described, set and removed; an entity is a user, a client id, both, or an address, by name or by default."""

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.admin.admin_quotas import Quota, entity_of, shown
from horolog.client.values.errors import KafkaError, PartialFailure
from horolog.testing import broker_in_thread

ANN = (("user", "ann"),)
BOTH = (("user", "ann"), ("client-id", None))


@pytest.fixture(scope="module")
def broker():
    with broker_in_thread() as running:
        yield running


@pytest.fixture
async def admin(broker):
    async with Admin(broker.bootstrap) as made:
        yield made
        await made.alter_quotas({entity: dict.fromkeys(values) for entity, values in await made.describe_quotas({})})


async def test_quotas_come_and_go(admin):
    assert await admin.describe_quotas({}) == []
    await admin.alter_quotas({BOTH: {"consumer_byte_rate": 5.0}, ANN: {"producer_byte_rate": 1024.0}})
    await admin.alter_quotas({ANN: {"request_percentage": 12.5}})
    ann = Quota(ANN, {"producer_byte_rate": 1024.0, "request_percentage": 12.5})
    both = Quota(BOTH, {"consumer_byte_rate": 5.0})
    assert await admin.describe_quotas({}) == [ann, both]
    assert await admin.describe_quotas({"user": "ann"}) == [ann, both]
    assert await admin.describe_quotas({"user": "ann"}, strict=True) == [ann]
    assert await admin.describe_quotas({"client-id": None}) == [both]
    assert await admin.describe_quotas({"user": None}) == []
    await admin.alter_quotas({ANN: {"producer_byte_rate": None, "request_percentage": None}})
    assert await admin.describe_quotas({}) == [both]


async def test_a_check_changes_nothing(admin):
    await admin.alter_quotas({ANN: {"producer_byte_rate": 1024.0}}, validate_only=True)
    assert await admin.describe_quotas({}) == []


async def test_what_is_refused_names_its_entity(admin):
    with pytest.raises(KafkaError, match=r"user ann: .*must be greater than 0"):
        await admin.alter_quotas({ANN: {"producer_byte_rate": -1.0}})
    with pytest.raises(PartialFailure) as some:
        await admin.alter_quotas({ANN: {"nothing": 1.0}, BOTH: {"producer_byte_rate": 1.0}})
    assert list(some.value.failures) == ["user ann"]
    with pytest.raises(KafkaError, match="Unsupported entity type"):
        await admin.describe_quotas({"nothing": "x"})


def test_entities_are_in_one_order_and_readable():
    assert entity_of({"client-id": None, "user": "ann"}) == BOTH
    assert shown(BOTH) == "user ann, client-id by default"
