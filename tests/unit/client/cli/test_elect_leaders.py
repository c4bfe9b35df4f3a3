"""`horolog elect-leaders` elects what a broker lets it elect, and shows what it refuses."""

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.cli import elect_leaders
from horolog.client.values.errors import error_of
from horolog.client.values.types import TopicPartition
from horolog.protocol.errors import ErrorCode


def test_a_partition_that_needs_no_election_is_done(run, topic):
    ended = run("elect-leaders", topic, "-o", "json")
    (row,) = ended.json
    assert (ended.code, row["topic"], row["partition"], row["elected"], row["error"]) == (0, topic, 0, False, None)
    assert row["leader"] is not None
    shown = run("elect-leaders", topic, "--partition", "0").out.splitlines()
    assert shown[1].split(maxsplit=3)[3] == "no election needed"
    everything = run("elect-leaders")
    assert (everything.code, "no partition needs another leader" in everything.err) == (0, True)


def test_what_is_elected_and_refused_is_shown(run, topic, monkeypatch):
    asked = []

    async def elected(self, partitions, *, unclean):
        asked.append((list(partitions), unclean))
        refusal = error_of(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "no replica is there")
        return {TopicPartition(topic, 0): None, TopicPartition("gone", 1): refusal}

    monkeypatch.setattr(Admin, "elect_leaders", elected)
    ended = run("elect-leaders", topic, "--unclean", "--yes")
    assert (ended.code, asked) == (1, [([TopicPartition(topic, 0)], True)])
    assert "elected" in ended.out
    assert "no replica is there" in ended.out
    rows = run("elect-leaders", topic, "-o", "json").json
    assert [(row["elected"], row["error"]) for row in rows if row["topic"] == topic] == [(True, None)]
    assert [(row["elected"], row["leader"], row["error"]) for row in rows if row["topic"] == "gone"] == [
        (False, None, "no replica is there")
    ]


def test_a_person_who_says_no_elects_nothing(run, topic, monkeypatch):
    async def no(*_):
        return False

    monkeypatch.setattr(elect_leaders, "confirmed", no)
    assert run("elect-leaders", topic, "--unclean").code == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--partition", "0"), 2, "--partition needs a single topic; name one topic"),
        (("none",), 4, "there is no topic 'none'"),
        (("{topic}", "--unclean"), 2, "an unclean election cannot be undone; pass --yes without a terminal"),
    ],
)
def test_what_cannot_be_elected(run, topic, words, code, said):
    ended = run("elect-leaders", *(word.format(topic=topic) for word in words))
    assert (ended.code, said in ended.err) == (code, True), ended
