"""Three brokers over a real S3 server with one fault of each sort, under every kind of client; `python -m tests.chaos` draws more of them."""

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")
pytest.importorskip("aiokafka")

from tests.chaos import run
from tests.chaos.clients import SOUGHT
from tests.chaos.plan import Event

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.faults]

EVENTS = [
    Event(1, "kill", 1, 1),
    Event(3, "storm", 0, 3),
    Event(8, "away", 0, 2),
    Event(9, "pause", 2, 4),
    Event(13, "empty", 3, 0),
    Event(14, "end", 1, 0),
]


@pytest.mark.timeout(400)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_whatever_happens_to_three_brokers_what_clients_learned_holds(s3_folder):
    report = run.run(s3_folder, 20, 7, EVENTS)
    assert report.problems == []
    assert [one for one in SOUGHT if not report.counts[one]] == []
    assert sum(count for what, count in report.counts.items() if what.startswith("requests to the store")) > 500
