"""Folders by date and by hour in any zone: every row lies where its clock says, and a range of times leaves no row of it out."""

import datetime as dt
import random
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import dataset

from horolog.client.values.types import TopicPartition
from horolog.pipeline.tables.layout import BY, BY_DATE, Folders, in_any_zone, wanted_folders
from horolog.pipeline.tables.lock import writing
from horolog.pipeline.tables.parquet import plain_rows
from horolog.pipeline.tables.table import FORMATS, TableError, open_table

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
UNITS = {"date": DAY_MS, "hour": HOUR_MS}
PLACE = TopicPartition("t", 0)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ZONES = sorted(available_timezones() - {"localtime", "Factory"})
TURNS = [
    ("Europe/Berlin", "2025-10-26T01:00Z"),  # 25 hours, the third of them twice
    ("Europe/Berlin", "2025-03-30T01:00Z"),  # 23
    ("Australia/Lord_Howe", "2025-04-05T15:00Z"),  # half an hour back
    ("America/St_Johns", "2010-11-07T02:31Z"),  # back over midnight
    ("America/Sao_Paulo", "2018-02-18T02:00Z"),  # at midnight to the day before
    ("Pacific/Kwajalein", "1969-09-30T13:00Z"),  # 23 hours back
    ("Pacific/Apia", "2011-12-30T10:00Z"),  # a day that was not
]


def millis(text):
    return (dt.datetime.fromisoformat(text) - EPOCH) // dt.timedelta(milliseconds=1)


def clock(ms, zone):
    return (EPOCH + dt.timedelta(milliseconds=ms)).astimezone(ZoneInfo(zone))


def number(folders, ms):
    """Of the folder that a time belongs to, by the clock of the zone."""
    local = clock(ms, folders.zone).replace(tzinfo=dt.UTC)
    return (local - EPOCH) // dt.timedelta(milliseconds=UNITS[folders.by])


# -- pure

times = st.integers(millis("1900-01-01T00:00Z"), millis("2060-01-01T00:00Z"))


@given(st.sampled_from(BY), st.sampled_from(ZONES), times, st.integers(0, 40 * HOUR_MS))
@example("hour", "America/St_Johns", millis("2010-11-07T02:30:30Z"), 1)
@example("date", "America/St_Johns", millis("2010-11-07T02:30:30Z"), HOUR_MS)
@example("date", "Pacific/Kwajalein", millis("1969-09-30T12:59Z"), DAY_MS)
def test_a_time_of_a_range_lies_in_its_folders(by, zone, since, more):
    folders = Folders(by, zone)
    assert folders.first(since) <= number(folders, since + more) <= folders.last(since + more + 1)


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize(("zone", "turn"), TURNS)
def test_a_range_around_a_turn_of_clocks_has_all_its_folders_and_few_others(by, zone, turn):
    folders, turn_ms = Folders(by, zone), millis(turn)
    around = range(turn_ms - 26 * HOUR_MS, turn_ms + 26 * HOUR_MS, HOUR_MS // 4)
    for since in around[::3]:
        later = [number(folders, ms) for ms in around if ms >= since]
        before = [number(folders, ms) for ms in around if ms < since]
        assert folders.first(since) <= min(later)
        assert not before or folders.last(since) >= max(before)
        assert min(later) - folders.first(since) <= 26 * HOUR_MS / UNITS[by] + 1


@given(st.sampled_from(BY), st.integers(-700_000, 2_900_000))
def test_a_folder_is_its_path_and_back(by, days):
    folders = Folders(by)
    one = days * 24 + days % 24 if by == "hour" else days
    assert folders.number_of(f"staging/x/{folders.path(one)}/00000001-a-0.parquet") == one
    assert folders.values(one)[0] == dt.date.fromordinal(719_163 + days)


def test_paths_sort_as_their_times_do():
    assert BY_DATE.path(20_000) == "date=2024-10-04"
    assert Folders("hour").path(20_000 * 24 + 7) == "date=2024-10-04/hour=07"
    for path in ("date=2024-10-04/x", "hour=07/x", "date=x/hour=07/x", "date=2024-10-04/hour=y/x"):
        with pytest.raises(TableError, match="not in a folder by date and hour in UTC"):
            Folders("hour").number_of(path)


def test_a_table_keeps_its_folders():
    berlin = Folders("hour", "Europe/Berlin")
    assert wanted_folders(None, None, None) == BY_DATE
    assert wanted_folders(None, "hour", "Europe/Berlin") == berlin
    assert wanted_folders(berlin, None, None) == wanted_folders(berlin, "hour", None) == berlin
    for by, zone in (("date", None), (None, "UTC"), ("date", "Europe/Berlin")):
        with pytest.raises(TableError, match="has folders by date and hour in Europe/Berlin, not by"):
            wanted_folders(berlin, by, zone)


# -- in Spark


@pytest.mark.long
def test_spark_finds_the_folder_that_the_clock_says_in_every_zone(spark):
    """The JVM has a table of zones of its own: where that says another hour, ranges take it in."""
    rng = random.Random(5)
    moments = [rng.randrange(millis("1971-01-01T00:00Z"), millis("2024-01-01T00:00Z")) for _ in range(8)]
    made = spark.createDataFrame([(ms,) for ms in moments], "ms long").selectExpr("timestamp_millis(ms) as timestamp")
    known = spark._jvm.java.time.ZoneId.getAvailableZoneIds()
    by_hour = [Folders("hour", zone) for zone in ZONES if known.contains(zone)]
    assert len(by_hour) > len(ZONES) - 10
    answered = made.coalesce(1).select(*(folders.number().alias(folders.zone) for folders in by_hour)).collect()
    others = set()
    for ms, row in zip(moments, answered, strict=True):
        for folders in by_hour:
            found = row[folders.zone]
            assert folders.first(ms) <= found <= folders.last(ms + 1), folders
            others |= {folders.zone} if found != number(folders, ms) else set()
    assert len(others) < 8, others


def test_times_beyond_the_years_of_four_digits_have_a_folder_too(spark):
    from pyspark.sql import functions as f

    times_us = [-(2**62), -1000, 2**63 - 1]
    rows = spark.createDataFrame([(us,) for us in times_us], "us long").select(
        f.timestamp_micros("us").alias("timestamp")
    )
    for folders in (BY_DATE, Folders("hour", "Pacific/Kiritimati")):
        found = [row[0] for row in rows.select(folders.number()).collect()]
        assert [folders.path(one)[:9] for one in found] == ["date=0001", folders.path(found[1])[:9], "date=9999"]
        assert folders.first(times_us[0] // 1000) <= found[0]
        assert found[2] <= folders.last(times_us[2] // 1000)


def rows_around(spark, turn_ms, hours=6):
    """A row each quarter of an hour, out of order."""
    return spark.range(8 * hours, numPartitions=2).selectExpr(
        "'t' as topic", "0 as partition", "id as offset",
        f"timestamp_millis({turn_ms - hours * HOUR_MS} + (id * 97) % {8 * hours} * {HOUR_MS // 4}) as timestamp",
        "0 as timestampType", "cast(null as binary) as key", "cast(cast(id as string) as binary) as value",
        "cast(null as array<struct<key:string,value:binary>>) as headers",
    )  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_by_hour_is_read_by_range_and_compacted(spark, tmp_path, kind):
    zone, turn = TURNS[0]
    folders, turn_ms = Folders("hour", zone), millis(turn)
    rows = rows_around(spark, turn_ms)
    folder = tmp_path / "table"
    table = open_table(kind, str(folder), spark)
    with writing(table):
        assert (table.offsets(), table.folders()) == ({}, None)
        table.append(rows.where("offset < 24"), {PLACE: 24}, {}, folders)
        table.append(rows.where("offset >= 24"), {PLACE: 48})
        assert table.folders() == folders
        table.offsets()
        assert table.compact() > 0
        assert table.offsets() == {PLACE: 48}
    again = open_table(kind, str(folder), spark)
    again.offsets()
    assert again.folders() == folders
    expected = {row["offset"]: round(row["timestamp"].timestamp() * 1000) for row in rows.collect()}
    found = {row["offset"]: row for row in again.rows().collect()}
    assert found.keys() == expected.keys()
    for offset, row in found.items():
        local = clock(expected[offset], zone)
        assert (row["date"], row["hour"]) == (local.date(), local.hour)
    for since in (turn_ms - HOUR_MS // 2, turn_ms, turn_ms + HOUR_MS // 4):
        until = since + HOUR_MS
        part = again.rows(since, until)
        assert {row["offset"] for row in part.collect()} == {n for n, ms in expected.items() if since <= ms < until}
        assert len(part.inputFiles()) <= 5 or kind != "parquet", "folders of other hours are left out"
    _others_read_it(spark, kind, folder, expected, zone)


def _others_read_it(spark, kind, folder, expected, zone):
    """The columns of the folders' names are there for everybody: a date, and an hour that is a number."""
    day, hour = dt.date(2025, 10, 26), 2
    wanted = {n for n, ms in expected.items() if (clock(ms, zone).date(), clock(ms, zone).hour) == (day, hour)}
    assert len(wanted) == 8, "this hour was there twice"
    if kind == "parquet":
        plain = spark.read.parquet(str(folder))
        assert [plain.schema[name].dataType.simpleString() for name in BY] == ["date", "int"]
        assert {row["offset"] for row in plain.where(f"date = '{day}' and hour = {hour}").collect()} == wanted
        around = plain_rows(spark, str(folder), millis(TURNS[0][1]) - HOUR_MS, millis(TURNS[0][1]) + HOUR_MS)
        assert around.count() == 8
        parted = dataset.dataset(folder, partitioning="hive")
        assert str(parted.schema.field("hour").type) == "int32"
        found = parted.to_table(filter=(dataset.field("hour") == hour) & (dataset.field("date") == str(day)))
    elif kind == "delta":
        from deltalake import DeltaTable

        found = DeltaTable(folder).to_pyarrow_table(filters=[("date", "=", day), ("hour", "=", hour)])
    else:
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog("horolog", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=folder.as_uri())
        scan = catalog.load_table("horolog.records").scan(row_filter=f"date = '{day}' and hour = {hour}")
        assert len(list(scan.plan_files())) == 1
        found = scan.to_arrow()
    assert set(found["offset"].to_pylist()) == wanted


def test_dates_of_an_unknown_zone_are_looked_for_a_day_around(spark):
    rows = rows_around(spark, 20 * DAY_MS)
    for zone in ("Pacific/Kiritimati", "Pacific/Niue"):
        folders = Folders("date", zone)
        dated = rows.select("*", *folders.columns(folders.number()))
        assert in_any_zone(dated, 20 * DAY_MS, 20 * DAY_MS + HOUR_MS).count() == 4


def test_a_zone_that_java_does_not_know_is_refused(spark):
    Folders("hour", "Europe/Berlin").check(spark)
    with pytest.raises(TableError, match="Java does not support the time zone Nowhere/Atall here"):
        Folders("hour", "Nowhere/Atall").check(spark)


# -- the command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--zone", "Europe/Berlinn"), "do you mean Europe/Berlin?"),
        (("--zone", "+02:00"), "is not the name of a time zone"),
        (("--partition-by", "week"), "expected"),
    ],
)
def test_folders_that_cannot_be_are_refused(words, said, capsys):
    from tests.support.command import run_typed

    ended = run_typed(capsys, "pipeline", "archive", "--topic", "t", "--to", "/nowhere", *words)
    assert (ended.code, said in ended.err) == (2, True), ended.err


def test_a_range_without_ends_has_all_rows():
    assert in_any_zone("rows", None, None) == "rows"
    assert BY_DATE.in_range("rows", None, None) == "rows"
