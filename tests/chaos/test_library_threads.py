"""Runs distinguish a client whose library has stopped from one that waits for a broker."""

import time

import pytest

from tests.chaos.library_threads import TASKS, sleeps_of_mains, stopped
from tests.support.waiting import wait_until


def task(tasks, number, name, sleeps):
    (tasks / number).mkdir(exist_ok=True)
    (tasks / number / "comm").write_text(f"{name}\n")
    (tasks / number / "status").write_text(
        f"Name:\t{name}\nvoluntary_ctxt_switches:\t{sleeps}\nnonvoluntary_ctxt_switches:\t9\n"
    )


def test_main_threads_that_neither_end_nor_wake_up_are_counted(tmp_path):
    for number, name in (("1", "python"), ("2", "rdk:main"), ("3", "rdk:main"), ("4", "rdk:main")):
        task(tmp_path, number, name, 5)
    (tmp_path / "9").mkdir()
    before = sleeps_of_mains(tmp_path)
    assert before == {"2": 5, "3": 5, "4": 5}
    task(tmp_path, "3", "rdk:main", 6)
    task(tmp_path, "4", "python", 5)
    assert stopped(before, sleeps_of_mains(tmp_path)) == 1


@pytest.mark.skipif(not TASKS.is_dir(), reason="the system does not show the threads of a process")
def test_the_main_thread_of_a_client_that_waits_for_a_broker_wakes_up():
    kafka = pytest.importorskip("confluent_kafka")
    others = sleeps_of_mains()
    consumer = kafka.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
    wait_until(lambda: sleeps_of_mains().keys() - others.keys())
    (mine,) = sleeps_of_mains().keys() - others.keys()
    before = {mine: sleeps_of_mains()[mine]}
    latest = time.monotonic() + 30
    while stopped(before, sleeps_of_mains()) and time.monotonic() < latest:
        time.sleep(0.05)
    assert stopped(before, sleeps_of_mains()) == 0
    consumer.close()
