"""Troubles of partitions, disks, certificates, times and brokers, each with what to do; and the checks that were not made."""

from horolog.client.admin.admin_cluster import LogDir
from horolog.client.segments.segments_look import HttpAccess
from horolog.client.values.types import TopicPartition
from horolog.client.wire.cluster_view import ClusterView, Node, PartitionView, TopicView
from horolog.console.facts import PartitionFacts, TopicFacts
from horolog.console.pulse import BrokerAnswer
from horolog.console.scrapes import Ready, Scrape, Totals, Worker
from horolog.console.troubles import (
    NAMED,
    Trouble,
    of_blocked,
    of_brokers,
    of_certificates,
    of_folders,
    of_partitions,
    of_times,
    unchecked,
    worst_first,
)

HOUR = 3_600_000
DOORS = [HttpAccess(f"http://host{number}:80") for number in range(3)]


def topic(name, *partitions, error=0):
    return TopicView(name, b"", False, dict(enumerate(partitions)), error, 0.0, list(range(len(partitions))))


def partition(leader=1, in_sync=(1,), error=0):
    return PartitionView(0, leader, 0, (1,), in_sync, error)


def view(*topics):
    return ClusterView("c", 1, {1: Node(1, "127.0.0.1", 1)}, {one.name: one for one in topics})


def test_partitions_that_nobody_leads_are_named():
    several = topic("t", *([partition(leader=7)] * (NAMED + 2)))
    said = of_partitions(view(several, topic("u", partition(in_sync=())), topic("v", error=3)))
    assert [one.kind for one in said] == ["bad", "warn"]
    assert said[0].sentence.startswith(f"{NAMED + 3} partitions offline: t-0, t-1")
    assert said[0].sentence.endswith("and 3 more")
    assert "u-0" in said[1].sentence
    assert of_partitions(view(topic("t", partition()))) == []
    assert all(one.advice for one in said)


def test_disks():
    folders = [
        LogDir(1, "/a", 100, 5, {}),
        LogDir(1, "/b", 100, 50, {}),
        LogDir(2, "/c", -1, -1, {}, 56),
        LogDir(2, "/d", -1, -1, {}),
    ]
    said = [one.sentence for one in of_folders(folders)]
    assert len(said) == 2
    assert "/a of broker 1 is nearly full: 5 B (5 %) left" in said[0]
    assert "/c of broker 2 is offline" in said[1]
    assert of_folders(None) == []


def test_certificates_that_cannot_be_read_are_passed_over():
    assert of_certificates({}, 0.0) == []
    assert of_certificates({"a:1": b"\x30\x00"}, 0.0) == []


def test_a_minute_ahead_is_a_clock_and_no_trouble():
    def facts(last):
        return TopicFacts("t", (PartitionFacts(TopicPartition("t", 0), 0, 1, 0, last),))

    assert of_times([facts(60_000), facts(None)], 0) == []
    assert of_times([facts(HOUR)], 0)[0].topic == "t"


def test_a_blocked_topic_has_a_remedy():
    found = of_blocked([("t", "retention of t is blocked")])
    assert (found[0].topic, "horolog.future.timestamp.max.ms" in found[0].advice) == ("t", True)
    assert of_blocked([]) == []


def test_brokers_report_themselves():
    worker = Worker(1, "starting", 3, 12.0)
    answers = [
        BrokerAnswer(DOORS[0], Ready(False, ("it starts",), ("a disk is scarce",)), Scrape(Totals(), 1.0, (worker,))),
        BrokerAnswer(DOORS[1], why="did not answer"),
    ]
    assert [(one.kind, one.sentence) for one in of_brokers(answers)] == [
        ("bad", "host0:80: it starts"),
        ("warn", "host0:80: a disk is scarce"),
        ("bad", "host0:80: worker 1 has been down for 12s"),
    ]
    assert of_brokers(answers[:1])[0].sentence == "it starts", "there is no other"


def test_the_worst_comes_first_and_once():
    warning, bad = Trouble("warn", "a"), Trouble("bad", "b")
    assert worst_first([warning, bad, warning]) == [bad, warning]


def test_checks_that_were_not_made():
    fine = [BrokerAnswer(DOORS[0], Ready(True, (), ()), Scrape(Totals(), None))]
    assert unchecked([], fine, "", left_out=False) == []
    assert unchecked(None, fine, "", left_out=True) == [
        "the disks: the broker does not show them to this user",
        "the times of topics that this page does not list",
    ]
    assert unchecked([], [], "Kafka does not report it", left_out=False) == [
        "the readiness of the brokers: Kafka does not report it"
    ]
    assert unchecked([], [*fine, BrokerAnswer(DOORS[1], why="is closed")], "", left_out=False) == [
        "the readiness of 1 broker: host1:80 is closed"
    ]
    assert unchecked([], [], "", left_out=False) == ["the readiness of the brokers: they have not answered yet"]
