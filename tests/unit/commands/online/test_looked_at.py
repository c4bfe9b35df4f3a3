"""What a lag command was asked about and did not look at is refused, with the reason."""

import asyncio
from types import SimpleNamespace

import pytest

from horolog.client.moments.lagging import Lag
from horolog.client.values.types import TopicPartition
from horolog.commands.errors import CommandError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.looked_at import require_looked_at, why_no_group, without_lag


class Client:
    """Knows two topics, and withholds none."""

    async def metadata(self):
        return SimpleNamespace(topics=dict.fromkeys(("orders", "weather"), SimpleNamespace(error_code=0)))

    async def withheld(self, topic):
        return None


class Admin:
    client = Client()

    async def list_groups(self):
        return [SimpleNamespace(group=name) for name in ("billing", "idle")]


def lag(group, topic):
    return Lag(group, TopicPartition(topic, 0), 1, 1, 0, None, 0.0, None)


BILLING = [lag("billing", "orders")]


def test_a_group_without_lag_is_named():
    assert without_lag(["billing", "idle"], BILLING) == ["group 'idle' has no committed offsets"]
    assert without_lag([], BILLING) == []


@pytest.mark.parametrize(
    ("groups", "topics"), [(["billing"], ["orders"]), (["billing"], []), ([], ["orders"]), ([], [])]
)
def test_what_was_looked_at_passes(groups, topics):
    asyncio.run(require_looked_at(Admin(), groups, topics, BILLING))


@pytest.mark.parametrize(
    ("groups", "topics", "lags", "expected"),
    [
        (
            ["billing"],
            ["order"],
            [],
            "group 'billing' has no committed offsets for order: there is no topic 'order'; do you mean 'orders'?",
        ),
        (["billing", "idle"], ["weather"], BILLING, "none of these groups has committed offsets for weather; "),
        ([], ["xyz"], [], "no group has committed offsets for xyz: there is no topic 'xyz'; `horolog topics list`"),
        (["billing", "idle"], [], BILLING, "group 'idle' has no committed offsets; "),
        (["billing", "idle"], ["orders"], BILLING, "group 'idle' has no committed offsets for orders; "),
        (["biling"], [], [], "there is no group 'biling'; do you mean 'billing'?"),
        ([], [], [], "no group has committed offsets; "),
    ],
)
def test_what_was_not_looked_at_is_refused(groups, topics, lags, expected):
    with pytest.raises(CommandError) as refused:
        asyncio.run(require_looked_at(Admin(), groups, topics, lags))
    assert (str(refused.value).startswith(expected), refused.value.code) == (True, ExitCode.NOT_FOUND)


def test_a_group_that_nothing_is_spelled_like():
    reason = str(asyncio.run(why_no_group(Admin(), "xyz")))
    assert reason == "there is no group 'xyz'; `horolog groups list` shows those that exist"
