"""`horolog producers` shows what partitions remember of their producers."""

from horolog.client.admin.admin_cluster import ActiveProducer
from horolog.client.cli.producers import producer_row
from horolog.client.values.types import TopicPartition


def test_the_producer_of_records_is_remembered(run, hourly):
    (found,) = run("producers", hourly, "-o", "json").json
    assert (found["partition"], found["epoch"], found["last_sequence"], found["open_from_offset"]) == (0, 0, 4, None)
    shown = run("producers", hourly, "--partition", "0")
    assert shown.out.splitlines()[1].split()[:4] == ["0", str(found["producer_id"]), "0", "4"]
    assert run("producers", hourly, "--open", "-o", "json").json == []


def test_unknown_topics_and_partitions_are_not_found(run, topic):
    assert run("producers", "no-such-topic").code == 4
    assert run("producers", topic, "--partition", "7").code == 4


def test_numbers_that_stand_for_no_value_are_null():
    row = producer_row(TopicPartition("t", 3), ActiveProducer(7, 1, -1, -1, -1, 12))
    assert row == {
        "topic": "t",
        "partition": 3,
        "producer_id": 7,
        "epoch": 1,
        "last_sequence": None,
        "last_timestamp": None,
        "coordinator_epoch": None,
        "open_from_offset": 12,
    }
