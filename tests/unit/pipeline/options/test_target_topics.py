"""A topic that rows go to has to be there, unless it may be made."""

from types import SimpleNamespace

import pytest

from horolog.client.values.errors import KafkaError, error_of
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.options.target_topics import partitions_of_target
from horolog.protocol.errors import ErrorCode


class FakeClient:
    """Knows of these topics; others are made if they are to be, or are not for this user."""

    def __init__(self, *topics, refused=None):
        self._topics = dict.fromkeys(topics)
        self._refused = refused
        self.asked = 0

    def partitions_now(self, topic):
        return [0] if topic == "known" else None

    async def metadata(self):
        self.asked += 1
        return SimpleNamespace(topics=self._topics)

    async def withheld(self, topic):
        return self._refused

    async def topic(self, name, *, create):
        assert create or name in self._topics or name == "known"
        return [0, 1]


async def test_a_topic_that_is_there_is_asked_for_once():
    client = FakeClient("orders")
    assert await partitions_of_target(client, "orders", create=False) == [0, 1]
    assert await partitions_of_target(client, "known", create=False) == [0, 1]
    assert client.asked == 1


async def test_one_that_is_not_there_is_refused_or_made():
    client = FakeClient("orders")
    assert await partitions_of_target(client, "ordrs", create=True) == [0, 1]
    with pytest.raises(OptionError) as refused:
        await partitions_of_target(client, "ordrs", create=False)
    said = "createTopics=true creates it, if the broker allows that"
    assert str(refused.value) == f"there is no topic 'ordrs'; do you mean 'orders'? {said}"
    with pytest.raises(OptionError) as refused:
        await partitions_of_target(client, "xyz", create=False)
    assert str(refused.value) == f"there is no topic 'xyz'; {said}"


async def test_one_that_this_user_may_not_see_is_told_as_that():
    client = FakeClient("orders", refused=error_of(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        await partitions_of_target(client, "hidden", create=False)
