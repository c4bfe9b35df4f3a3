"""The page Now shows what there is, and troubles; ten thousand topics are paged, filtered and sorted."""

from horolog.client.admin.admin_cluster import LogDir
from horolog.client.values.types import TopicPartition
from horolog.client.wire.cluster_view import ClusterView, Node, PartitionView, TopicView
from horolog.console.facts import PartitionFacts, TopicFacts
from horolog.console.now import (
    NAMED,
    ROWS,
    by_topic,
    choose,
    leaders_of,
    of_certificates,
    of_folders,
    of_partitions,
    of_times,
)
from tests.support.console_browser import shown, topic_with

HOUR = 3_600_000


def topic(name, *partitions, error=0):
    return TopicView(name, b"", False, dict(enumerate(partitions)), error, 0.0, list(range(len(partitions))))


def partition(leader=1, in_sync=(1,), error=0):
    return PartitionView(0, leader, 0, (1,), in_sync, error)


def view(*topics):
    return ClusterView("c", 1, {1: Node(1, "127.0.0.1", 1)}, {one.name: one for one in topics})


async def test_topics_are_shown_with_their_facts_and_linked():
    async with shown() as (page, client, broker):
        now = broker.clock.wall_ms()
        await topic_with(client, "orders", [(now - HOUR, b"a"), (now, b"b")], 2)
        await topic_with(client, "ahead", [(now + 5 * HOUR, b"x")], message_timestamp_after_max_ms="999999999")
        await topic_with(client, "late", [(now, b"a"), (now - HOUR, b"b")])
        text = (await page.get("/")).text
        assert 'href="/topic?name=orders"' in text
        assert "in order" in text
        assert "1h late" in text
        assert "retention of ahead is blocked, partition 0: the record at offset 0" in text
        assert "<h2>Disks</h2>" in text
        part = (await page.get("/?filter=ORD&sort=size", headers={"hx-request": "true"})).text
        assert "<html" not in part
        assert "1 of 3" in part
        assert "late" not in part.partition("<tbody>")[2].partition("</tbody>")[0]
        assert "No topic has" in (await page.get("/?filter=%3Cb%3E")).text
        assert "<b>”" not in (await page.get("/?filter=%3Cb%3E")).text


async def test_an_empty_cluster():
    async with shown() as (page, _, _):
        text = (await page.get("/")).text
        assert "There are no topics" in text
        assert "Nothing is wrong" in text


def test_ten_thousand_topics_are_paged():
    topics = [topic(f"topic-{number:05}", *([partition()] * (1 + number % 3))) for number in range(10_000)]
    first = choose(topics, "", "name", 1, {})
    assert (len(first.topics), first.pages, first.found, first.all) == (ROWS, 10_000 // ROWS, 10_000, 10_000)
    assert choose(topics, "", "name", 9999, {}).number == first.pages
    assert [one.name for one in choose(topics, "0999", "size", 1, {"topic-09995": 5}).topics][:2] == [
        "topic-09995",
        "topic-00999",
    ]
    assert len(choose(topics, "", "partitions", 1, {}).topics[0].partitions) == 3
    assert choose(topics, "nothing", "name", 3, {}).topics == ()


def test_partitions_that_nobody_leads_are_named():
    several = topic("t", *([partition(leader=7)] * (NAMED + 2)))
    said = of_partitions(view(several, topic("u", partition(in_sync=())), topic("v", error=3)))
    assert [one.kind for one in said] == ["bad", "warn"]
    assert said[0].sentence.startswith(f"{NAMED + 3} partitions are offline: t-0, t-1")
    assert said[0].sentence.endswith("and 3 more")
    assert "u-0" in said[1].sentence
    assert of_partitions(view(topic("t", partition()))) == []
    assert leaders_of(view(several, topic("u", partition()))) == {TopicPartition("u", 0): 1}


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


def test_sizes_are_summed_by_topic():
    sizes = {TopicPartition("t", 0): 5, TopicPartition("t", 1): 6, TopicPartition("u", 0): 1}
    assert by_topic(sizes) == {"t": 11, "u": 1}
    assert by_topic(None) == {}


def test_a_minute_ahead_is_a_clock_and_no_trouble():
    def facts(last):
        return TopicFacts("t", (PartitionFacts(TopicPartition("t", 0), 0, 1, 0, last),))

    assert of_times([facts(60_000), facts(None)], 0) == []
    assert of_times([facts(HOUR)], 0)[0].topic == "t"
