"""What a run takes: lives are told apart by their processes, and compared at one age."""

import os
from pathlib import Path
from types import SimpleNamespace

from confluent_kafka import KafkaError, KafkaException

from tests.chaos import resources as module
from tests.chaos.resources import OLD_S, Resources, Row, lag_of, size_of
from tests.soak.vitals import MOST_MEMORY_GROWTH_BYTES, Sample

MANY = 24


def resources(*lives):
    """Of broker 1, whose memory at that age is given."""
    brokers = SimpleNamespace(processes={1: SimpleNamespace(pid=os.getpid())}, place=lambda _: Path("/none"))
    made = Resources(brokers, 1)
    made.samples[1] = [
        Sample(life, age_s, memory, 20) for life, memory in enumerate(lives, 1) for age_s in (1.0, OLD_S, OLD_S + 5)
    ]
    return made


def test_a_broker_that_takes_more_in_each_life_is_a_problem():
    (problem,) = resources(*(life * MOST_MEMORY_GROWTH_BYTES for life in range(MANY))).problems()
    assert problem.startswith("memory grows: broker 1, 30 s old")


def test_one_that_takes_the_same_is_none():
    same = resources(*[MOST_MEMORY_GROWTH_BYTES] * MANY)
    assert not list(same.problems())
    assert [one.life for one in same.of_one_age(1)] == list(range(MANY // 2 + 1, MANY + 1))
    assert next(same.figures()).startswith(f"broker 1, {MANY} lives: memory 8.0 to 8.0 MiB")


def test_another_process_is_another_life():
    made = resources()
    made._look(1)
    made._brokers.processes[1].pid = os.getppid()
    made._look(1)
    assert [one.life for one in made.samples[1]] == [1, 2]


def test_open_logs_are_not_counted(tmp_path):
    made = resources()
    made._brokers.place = lambda _: tmp_path
    with (tmp_path / "log").open("wb"), (tmp_path / "index").open("wb"):
        made._look(1)
        (without,) = made.samples[1]
        made._brokers.place = lambda _: tmp_path / "log"
        made._look(1)
    assert made.samples[1][-1].descriptors == without.descriptors + 1


def test_the_size_of_a_bucket_is_that_of_its_files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b").write_bytes(b"12345")
    (tmp_path / "c").write_bytes(b"1")
    assert size_of(tmp_path) == (2, 6)
    assert str(Row(61.0, 2, 6, None)) == "   61.0 s  bucket 2 objects, 0.0 MB; lag of groups unknown"


class Group:
    """Refuses the first questions, as brokers do whose client has not learned of a new leader."""

    def __init__(self, refusals):
        self.refusals = refusals

    def committed(self, places, _seconds):
        if self.refusals:
            self.refusals -= 1
            raise KafkaException(KafkaError(KafkaError.NOT_COORDINATOR))
        return [SimpleNamespace(offset=offset) for offset in places]

    def get_watermark_offsets(self, _place, _seconds):
        return 0, 10


def test_a_lag_is_asked_for_again_until_the_time_is_over(monkeypatch):
    monkeypatch.setattr(module, "ASKS_EVERY_S", 0)
    assert lag_of([Group(2), Group(0)], [-1001, 4]) == 32
    monkeypatch.setattr(module, "ASKED_WITHIN_S", 0)
    assert lag_of([Group(100)], []) is None
