"""Old dates leave a table by rule, and a process that is killed while it removes them loses no row that stays."""

import datetime as dt
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from horolog.pipeline.tables.layout import Folders
from horolog.pipeline.tables.table import open_table
from horolog.pipeline.tables.upkeep import Gone, Part, date_of_file, first_kept, gone, is_old, old_rows
from tests.pipeline.tables.every_table import KEEP_FROM, PLACE, kept_offsets, offsets_of, write, written
from tests.support.style import PROJECT

# -- pure


def test_dates_before_the_bound_go_and_rows_without_a_time_stay():
    days = ["1969-12-31", "1970-01-01", "1970-01-02", "2025-11-18", "2025-11-19"]
    assert [day for day in days if is_old(day, KEEP_FROM)] == ["1970-01-02", "2025-11-18"]


def test_a_date_stays_while_a_row_of_it_may_be_young():
    ms = round(dt.datetime(2025, 11, 18, 23, 30, tzinfo=dt.UTC).timestamp() * 1000)
    assert first_kept(None, ms) == dt.date(2025, 11, 18)
    assert first_kept(Folders("hour"), ms + 1_800_000) == dt.date(2025, 11, 19)
    assert first_kept(Folders("hour", "Asia/Tokyo"), ms) == dt.date(2025, 11, 19)
    assert first_kept(Folders("date", "America/New_York"), ms) == dt.date(2025, 11, 18)


def test_the_filter_on_rows_says_the_same():
    assert old_rows(KEEP_FROM) == "date > '1970-01-01' AND date < '2025-11-19'"
    assert date_of_file("/t/date=2025-11-18/hour=05/a.parquet") == "2025-11-18"


def test_what_goes_is_counted():
    assert gone([]) == Gone()
    parts = [Part("b", "2025-11-18", 10, 2), Part("a", "2025-11-17", 5, 1), Part("c", "2025-11-18", 1, 1)]
    assert gone(parts) == Gone(3, 4, 16, ("2025-11-17", "2025-11-18"))


# -- every kind of table


WORK = """
import datetime as dt, sys, time
from horolog.pipeline.tables.lock import writing
from horolog.pipeline.tables.table import open_table
table = open_table(sys.argv[1], sys.argv[2], None)
table.offsets()
print("ready", flush=True)
with writing(table, 30_000):
    table.expire(dt.date(2025, 11, 19))
    table.forget_versions(time.time_ns() // 1_000_000 + 1000)
    table.vacuum(time.time_ns() // 1_000_000 + 1000)
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_process_that_is_killed_at_any_moment_loses_no_row_that_stays(spark, tmp_path, kind):
    folder = str(written(kind, tmp_path / "table", spark).folder)
    rng = random.Random(int(os.environ.get("HOROLOG_SEED", "1")))
    everything = offsets_of(open_table(kind, folder, spark))
    kept = kept_offsets(range(8), range(8, 16))
    ended = []
    for number in range(6):
        job = subprocess.Popen([sys.executable, "-c", WORK, kind, folder], cwd=PROJECT, stdout=subprocess.PIPE)
        assert job.stdout.readline() == b"ready\n"
        if number < 5:
            time.sleep(rng.random() * 0.2)
            job.kill()
        ended.append(job.wait(60))
        job.stdout.close()
        again = open_table(kind, folder, spark)
        assert offsets_of(again) in (everything, kept)
        assert (again.offsets(), again.topic_ids()) == ({PLACE: 16}, {"t": "id"})
    assert (ended[-1], -signal.SIGKILL in ended) == (0, True)
    assert offsets_of(open_table(kind, folder, spark)) == kept
    write(open_table(kind, folder, spark), spark, range(16, 24))
    assert len(offsets_of(open_table(kind, folder, spark))) == len(kept) + 9
