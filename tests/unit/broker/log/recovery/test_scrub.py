"""All blocks are read once a round, no faster than told, and bytes other than those written are reported."""

from horolog.broker.log.integrity import RescanQueue
from horolog.broker.log.recovery import Scrub
from tests.support.log_model import read_all
from tests.unit.broker.log.recovery.test_rescan import damage, model, rescan_all

__all__ = ["model"]


def scrub(model, bytes_per_second=1 << 30):
    """A whole round; how many steps it took."""
    now = iter(range(0, 100_000, 10))
    partition = model.partition
    folder = partition.folder
    run = Scrub(folder.rescan_queue, folder.counters, model.storage, lambda: float(next(now)))
    steps = 0
    while (job := run.step([partition], 1000, bytes_per_second)) is not None:
        job()
        steps += 1
        if run._round is None:
            break
    return steps


def test_the_scrub_finds_what_nobody_reads(model):
    damage(model, 0)
    read_all(model.partition)  # written in this life: nothing looks, but the scrub
    scrub(model)
    assert rescan_all(model) == 1
    model.check()
    assert scrub(model) == 1
    assert rescan_all(model) == 0, "damage that was set aside is no news"


def test_the_scrub_is_paced_and_looks_at_everything(model):
    segments = [one for one in model.partition.segments[:-1] if one.size_bytes]
    steps = scrub(model, bytes_per_second=1)
    counters = model.partition.folder.counters
    assert counters.blocks_scrubbed.value == len(segments)
    assert steps >= len(segments)


def test_the_scrub_waits_for_its_time_and_can_be_off():
    now = [0.0]
    run = Scrub(RescanQueue(), None, None, lambda: now[0])
    assert run.step([], 5000, 1) is None
    now[0] = 4.9
    assert run.step([], 5000, 1) is None
    assert "waiting" in repr(run)
    assert run.step([], -1, 1) is None
