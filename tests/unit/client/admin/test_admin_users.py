"""SCRAM users are added, described and removed; a password goes over the wire salted and hashed alone."""

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.admin.admin_users import NewUser
from horolog.client.values.errors import KafkaError, PartialFailure
from horolog.testing import broker_in_thread


@pytest.fixture(scope="module")
def broker():
    with broker_in_thread() as running:
        yield running


@pytest.fixture
async def admin(broker):
    async with Admin(broker.bootstrap) as made:
        yield made


def user(name, mechanism="SCRAM-SHA-512", iterations=4096):
    return NewUser(name, mechanism, iterations, b"salt of it", b"x" * (64 if mechanism.endswith("512") else 32))


async def test_users_come_and_go(admin):
    assert await admin.describe_users() == {}
    await admin.put_users([user("ann"), user("bob", "SCRAM-SHA-256", 8192)])
    await admin.put_users([user("ann", "SCRAM-SHA-256")])
    assert await admin.describe_users() == {
        "ann": {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 4096},
        "bob": {"SCRAM-SHA-256": 8192},
    }
    assert await admin.describe_users(["bob"]) == {"bob": {"SCRAM-SHA-256": 8192}}
    await admin.put_users([user("bob", "SCRAM-SHA-256", 5000)])
    assert (await admin.describe_users(["bob"]))["bob"] == {"SCRAM-SHA-256": 5000}
    await admin.remove_users({"ann": "SCRAM-SHA-512", "bob": "SCRAM-SHA-256"})
    assert await admin.describe_users() == {"ann": {"SCRAM-SHA-256": 4096}}
    await admin.remove_users({"ann": "SCRAM-SHA-256"})


async def test_what_is_refused_names_its_user(admin):
    with pytest.raises(KafkaError, match="ann: "):
        await admin.remove_users({"ann": "SCRAM-SHA-512"})
    with pytest.raises(KafkaError, match=r"^UNACCEPTABLE_CREDENTIAL: cat: "):
        await admin.put_users([user("cat", iterations=5)])
    with pytest.raises(PartialFailure) as some:
        await admin.put_users([user("cat", iterations=5), user("dan")])
    assert "cat" in some.value.failures
    with pytest.raises(KafkaError, match="nobody: "):
        await admin.describe_users(["nobody"])


def test_a_user_is_shown_without_its_password():
    shown = repr(NewUser("ann", "SCRAM-SHA-512", 4096, b"salt of it", b"hash of it"))
    assert "ann" in shown
    assert "of it" not in shown
