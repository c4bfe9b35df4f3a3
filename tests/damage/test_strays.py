"""A copy of a log file under a name that lies inside of another's range: every record is served once."""

import shutil
from pathlib import Path

import pytest

from tests.support.damaged_log import FIRST_MS, ONE_SEGMENT, SMALL, DamagedLog
from tests.support.log_model import NEW, encode
from tests.support.logs import WALL_MS, open_logs, topic_config

BATCHES = (1, 3, 5, 2, 7, 1, 4, 6, 1, 5, 2, 8, 1, 1, 3)


def written(data: Path, config: dict[str, str], *, clean: bool) -> DamagedLog:
    """Batches of several records, so that a name can lie inside of one."""
    log = DamagedLog(data, config=dict(config))
    log.logs = open_logs(data)
    partition = log.logs.create("t", 0, topic_config(config), None)
    for count in BATCHES:
        offset = partition.log_end_offset
        times = [FIRST_MS + (offset + each) * 10 for each in range(count)]
        values = [b"%d-" % (offset + each) + b"v" * 40 for each in range(count)]
        partition.append(encode(2, 0, times, values), WALL_MS, produce_version=NEW)
        partition.flush()
        log.rows += [(offset + each, times[each], values[each]) for each in range(count)]
    log.stop(clean=clean)
    return log


def end() -> int:
    return sum(BATCHES)


@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "kill"])
@pytest.mark.parametrize("seals", [True, False], ids=["seals", "no seals"])
@pytest.mark.parametrize("config", [SMALL, ONE_SEGMENT], ids=["segments", "one segment"])
@pytest.mark.parametrize(
    "at", [14, *(pytest.param(at, marks=pytest.mark.slow) for at in (2, 4, 8, 9, 10, 11, 19, 23, 29, 33, 41, 47))]
)
def test_each_record_is_served_once(
    at: int, config: dict[str, str], tmp_path: Path, *, seals: bool, clean: bool
) -> None:
    for source in range(6):
        log = written(tmp_path / f"{source}", config, clean=clean)
        files = sorted(log.folder.glob("*.log"))
        stray = log.folder / f"{at:020d}.log"
        if source < len(files) and not stray.exists():
            shutil.copy2(files[source], stray)
            if not seals:
                (log.folder / "horolog-seals").unlink(missing_ok=True)
            log.open()
            log.check()
            assert log.partition.log_end_offset == end()
            log.stop(clean=True)
            log.open()
            log.check()
        log.close()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "kill"])
@pytest.mark.parametrize("seals", [True, False], ids=["seals", "no seals"])
@pytest.mark.parametrize("config", [SMALL, ONE_SEGMENT], ids=["segments", "one segment"])
@pytest.mark.parametrize("kind", ["zeros", "garbage", "half a batch"])
def test_a_file_without_a_record_hides_none(
    kind: str, config: dict[str, str], tmp_path: Path, *, seals: bool, clean: bool
) -> None:
    for at in (2, 4, 14, 18):
        log = written(tmp_path / f"{at}", config, clean=clean)
        files = sorted(log.folder.glob("*.log"))
        stray = log.folder / f"{at:020d}.log"
        if stray in files:
            continue
        contents = {"zeros": bytes(500), "garbage": b"\xff" * 500, "half a batch": files[0].read_bytes()[:70]}
        stray.write_bytes(contents[kind])
        if not seals:
            (log.folder / "horolog-seals").unlink(missing_ok=True)
        for _ in range(2):
            log.open()
            log.check()
            assert log.partition.log_end_offset == end()
            log.stop(clean=True)
        assert Path(f"{stray}.stray").read_bytes() == contents[kind]
