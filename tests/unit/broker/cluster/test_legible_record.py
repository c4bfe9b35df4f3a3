"""A worker that begins waits for those who know to write what it cannot read."""

import pytest

from horolog.broker.cluster import legible_record
from horolog.broker.cluster.legible_record import is_legible, until_legible
from horolog.broker.cluster.new_topics import NewTopic
from tests.support.at_once import at_once
from tests.support.crew import Crew

FOLDERS = ["/data"]
JOURNAL, CLUSTER = "/data/horolog-journal", "/data/horolog-cluster"


class Link:
    """Its worker 1 looks at the second question."""

    def __init__(self, crew):
        self.asked = 0
        self._crew = crew

    def look_at_the_record(self):
        self.asked += 1
        if self.asked == 2 and self._crew.clusters:
            self._crew.ties[1].on_journal(0)


@pytest.fixture
def crew(monkeypatch):
    monkeypatch.setattr(legible_record, "LOOK_EVERY_S", 0.001)
    crew = Crew((1, 2)).start()
    at_once(crew.clusters[1].create_topics, [NewTopic("a", 1)])
    return crew


HURT = [
    lambda storage: storage.corrupt(JOURNAL, 20, 1),
    lambda storage: storage.corrupt(JOURNAL, storage.read_all(JOURNAL).index(b"TopicsCreated"), 1),
    lambda storage: storage.write_atomically(JOURNAL, b""),
    lambda storage: storage.corrupt(CLUSTER, 20, 1),
    lambda storage: storage.remove(CLUSTER),
]


@pytest.mark.parametrize("hurt", HURT)
async def test_it_is_written_by_who_knows_it(crew, hurt):
    hurt(crew.storage)
    assert not is_legible(crew.storage, FOLDERS)
    link = Link(crew)
    await until_legible(crew.storage, FOLDERS, link)
    assert link.asked == 2
    assert is_legible(crew.storage, FOLDERS)
    crew.kill(2)
    assert crew.begin(2).state == crew.clusters[1].state


async def test_nobody_is_waited_for_ever(crew, monkeypatch):
    monkeypatch.setattr(legible_record, "MOST_LOOKS", 5)
    crew.kill()
    crew.storage.corrupt(JOURNAL, 20, 1)
    link = Link(crew)
    await until_legible(crew.storage, FOLDERS, link)
    assert link.asked == 5


async def test_nothing_is_asked_where_nothing_is_wrong(crew):
    link = Link(crew)
    await until_legible(crew.storage, ["/away", *FOLDERS], link)
    assert link.asked == 0


def test_what_the_disk_does_not_give_is_told_by_who_opens_the_folder(crew):
    crew.storage.fail("read", "horolog-journal")
    assert is_legible(crew.storage, FOLDERS)


def test_where_no_workers_were_there_is_nothing_to_wait_for(crew):
    crew.stop()
    crew.merge()
    assert is_legible(crew.storage, FOLDERS)
