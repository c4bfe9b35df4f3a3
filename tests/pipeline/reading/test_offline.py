"""Segment files are read as they lie there, whoever wrote them, and nothing that is not wanted is read."""

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from horolog.broker.log.partition import closing
from horolog.broker.log.segments import index_loading
from horolog.pipeline import plan
from horolog.pipeline.base.positions import DataLoss, OptionError
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.reading.offline import make_plan, read_pieces, tasks
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import TimestampType
from tests.pipeline import samples
from tests.support import golden, logs

NOW_MS = 1_795_190_000_000


def read(path, **options):
    options = parse_read({"path": str(path), "includeHeaders": "true", **options}, NOW_MS)
    made = make_plan(options)
    return samples.rows_in(read_pieces(made.pieces, include_headers=True, fail_on_data_loss=options.fail_on_data_loss))


def contents(folder):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("name", "stage"), golden.names())
def test_a_golden_folder_holds_what_its_broker_would_read(name, stage, golden_root, tmp_path):
    case = golden.Case(name, golden_root)
    folder = case.copy(stage, tmp_path)
    before = contents(tmp_path)
    rows = {level: read(folder, **{"kafka.isolation.level": level}) for level in ("read_uncommitted", "read_committed")}
    assert contents(tmp_path) == before
    manager = logs.open_logs(tmp_path)
    with_broker = manager.partitions["topic", 0]
    records = logs.read_all(with_broker)
    answered = [one._replace(timestamp_type=max(one.timestamp_type, TimestampType.CREATE_TIME)) for one in records]
    there = samples.rows_of(answered, "topic", 0, headers=True)
    assert rows["read_uncommitted"] == [row for row in there if row[4] >= with_broker.log_start_offset]
    assert {row[4] for row in rows["read_committed"]} <= {row[4] for row in there}
    let_go(manager)


def let_go(manager):
    """Give the descriptors back without stopping cleanly: Spark's gateway cannot do with more than 1024 in this process."""
    for partition in manager.partitions.values():
        closing.close_files(partition)


@pytest.mark.parametrize("name", sorted({name for name, stage in golden.names() if stage == "clean"}))
def test_a_golden_folder_holds_what_the_java_consumer_read(name, golden_root):
    case = golden.Case(name, golden_root)
    if case.stages[-1] != "clean":
        pytest.skip("the consumer read at another stage")
    views = [view for view in case.manifest["consumed"] if view in {"default", "read_uncommitted", "read_committed"}]
    for view in views:
        level = view if view != "default" else "read_uncommitted"
        rows = read_golden(case, level)
        expected = [(one.offset, one.timestamp, one.key, one.value) for one in case.records(view)]
        assert [(row[4], row[5], row[0], row[1]) for row in rows] == expected, view


def read_golden(case, level, stage="clean"):
    folder = case.root / "copies" / case.name
    if not folder.exists():
        case.copy(stage, folder)
    return read(folder, **{"kafka.isolation.level": level})


def log_of(folder, *, segments=10, batches=10, per_batch=20, sealed=True):
    """A partition whose times go up a second a record, in segments of the same size; offsets as rows of what was written."""
    data = folder / "data"
    manager = logs.open_logs(data)
    config = logs.topic_config(
        {"segment.bytes": str(segment_bytes(batches, per_batch)), "index.interval.bytes": "1000"}
    )
    partition = manager.create("topic", 0, config, None)
    offset = 0
    for _ in range(segments * batches):
        partition.append(bytes(batch_at(offset, per_batch)), NOW_MS, produce_version=9)
        partition.flush()
        offset += per_batch
    if sealed:
        partition.sync()
        manager.close()
    let_go(manager)
    return data, offset


def copied(folder):
    """As `cp` does it: every file is of now."""
    return Path(shutil.copytree(folder, folder.with_name("copy"), copy_function=shutil.copyfile))


def without_seals(folder):
    """As a Kafka leaves it, or a broker that was killed."""
    (folder / "topic-0" / "horolog-seals").unlink()
    return folder


@pytest.mark.parametrize("made", [copied, without_seals])
def test_a_hundredth_of_many_small_segments_costs_less_than_a_twentieth(tmp_path, made):
    """Of each segment the indexes and a few heads are read: 60 KB are not worth more."""
    data, count = log_of(tmp_path, segments=100, batches=7)
    begin = samples.BASE_MS + 1000 * (count // 2)
    wanted = {"startingTimestamp": str(begin), "endingTimestamp": str(begin + 10 * count)}
    folder = made(data)
    part = make_plan(parse_read({"path": str(folder), **wanted}, NOW_MS))
    whole = part.bytes_read + part.bytes_skipped
    assert 50_000 * 100 < whole < 70_000 * 100
    assert part.bytes_read < whole / 50
    assert part.looked_at_bytes + part.bytes_read < whole / 20
    assert [row[4] for row in read(folder, **wanted)] == list(range(count // 2, count // 2 + count // 100))


def test_a_copy_whose_log_is_not_what_was_sealed_is_read_again(tmp_path):
    """Of the same size, but its last batch does not begin where the index says: nothing of the seal is believed."""
    data, count = log_of(tmp_path, segments=20)
    logs_there = sorted((data / "topic-0").glob("*.log"))
    damaged = bytearray(logs_there[7].read_bytes())
    last = len(damaged) - len(batch_at(0, 20))
    damaged[last : last + 40] = bytes(40)
    logs_there[7].write_bytes(damaged)
    since = str(samples.BASE_MS + 1000 * (count // 2))
    with pytest.raises(DataLoss):
        read(data, startingTimestamp=str(samples.BASE_MS + 1000))
    assert [row[4] for row in read(data, startingTimestamp=since)] == list(range(count // 2, count))


def batch_at(offset, count):
    records = [
        Record(n, samples.BASE_MS + 1000 * (offset + n), 0, b"key", b"%06d" % (offset + n) + bytes(400))
        for n in range(count)
    ]
    return encode_batch(records)


def segment_bytes(batches, per_batch):
    return len(batch_at(0, per_batch)) * batches + 100


def test_a_time_range_reads_its_segments_only(tmp_path):
    data, count = log_of(tmp_path)
    whole = plan(str(data))
    assert whole.bytes_skipped == 0
    assert whole.segments_read == 10
    since = samples.BASE_MS + 1000 * 1010
    part = plan(str(data), since, since + 20_000)
    assert part.segments_read == 1
    assert part.segments_skipped == 9
    assert part.bytes_read + part.bytes_skipped == whole.bytes_read
    assert part.bytes_read < whole.bytes_read / 20
    assert part.looked_at_bytes < whole.bytes_read / 4  # blocks of two segments are held against their sums
    rows = read(data, startingTimestamp=str(since), endingTimestamp=str(since + 20_000))
    assert [row[4] for row in rows] == list(range(1010, 1030))
    assert "reads 1 segments" in str(part)
    assert count == 2000


def test_times_follow_the_grammar_of_the_command_line(tmp_path):
    data, _ = log_of(tmp_path, segments=1)
    assert [row[4] for row in read(data, startingTimestamp="2023-11-14T22:16:00Z")] == list(range(160, 200))
    with pytest.raises(OptionError, match="startingTimestamp: 'yesterdya'"):
        plan(str(data), "yesterdya")


def test_what_has_nothing_after_the_time_is_empty_or_an_error(tmp_path):
    data, _ = log_of(tmp_path, segments=1)
    late = str(samples.BASE_MS + 10**9)
    assert read(data, startingTimestamp=late) == []
    assert len(read(data, endingTimestamp=late)) == 200
    with pytest.raises(OptionError, match="topic-0: no record at or after"):
        read(data, startingTimestamp=late, onNoMatch="error")
    assert len(read(data, endingTimestamp=late, onNoMatch="error")) == 200


def test_an_unsealed_log_is_read_to_its_last_whole_batch(tmp_path):
    data, _ = log_of(tmp_path, segments=2, sealed=False)
    active = max((data / "topic-0").glob("*.log"))
    with active.open("ab") as file:
        file.write(batch_at(400, 5)[:-7])
    before = contents(data)
    assert [row[4] for row in read(data)] == list(range(400))
    assert contents(data) == before


def test_index_files_of_another_log_are_not_believed(tmp_path):
    data, _ = log_of(tmp_path)
    indexes = sorted((data / "topic-0").glob("*.timeindex")), sorted((data / "topic-0").glob("*.index"))
    for files in indexes:
        for wrong, right in pairwise(files[:6]):
            shutil.copy(right, wrong)
    since = samples.BASE_MS + 1000 * 450
    rows = read(data, startingTimestamp=str(since), endingTimestamp=str(since + 300_000))
    assert [row[4] for row in rows] == list(range(450, 750))


def test_damage_is_an_error_unless_it_may_be(tmp_path):
    data, _ = log_of(tmp_path, segments=1, sealed=False)
    (log,) = (data / "topic-0").glob("*.log")
    content = bytearray(log.read_bytes())
    content[len(content) // 2 + 200] ^= 1
    log.write_bytes(content)
    with pytest.raises(DataLoss, match="damaged"):
        read(data)
    assert [row[4] for row in read(data, failOnDataLoss="false")] == [*range(100), *range(120, 200)]


def test_damage_in_segments_that_are_not_wanted_is_no_matter(tmp_path):
    data, _ = log_of(tmp_path, segments=3, sealed=False)
    first = min((data / "topic-0").glob("*.log"))
    content = bytearray(first.read_bytes())
    content[len(content) // 2 + 200] ^= 1
    first.write_bytes(content)
    assert [row[4] for row in read(data, startingTimestamp=str(samples.BASE_MS + 300_000))] == list(range(300, 600))
    with pytest.raises(DataLoss):
        read(data)


@pytest.mark.parametrize("at", [0, 6, 7, 10])
def test_what_the_broker_would_correct_is_read_right(tmp_path, at):
    data, _ = log_of(tmp_path, segments=1, sealed=False)
    (log,) = (data / "topic-0").glob("*.log")
    content = bytearray(log.read_bytes())
    content[len(content) // 2 + at] ^= 1  # offset and size are under no checksum
    log.write_bytes(content)
    assert [row[4] for row in read(data)] == list(range(200))
    assert log.read_bytes() == content


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["emptied", "other"])
def test_index_files_that_are_not_their_logs_are_made_anew_in_memory_however_large_the_log(
    tmp_path, monkeypatch, suffix, damage
):
    """There is no broker that would do it in the background."""
    monkeypatch.setattr(index_loading, "REBUILD_AT_ONCE_BYTES", 0)
    data, count = log_of(tmp_path, segments=3)
    for path in (data / "topic-0").glob(f"*{suffix}"):
        path.write_bytes(b"" if damage == "emptied" else bytes(path.stat().st_size))
    before = contents(data)
    since = samples.BASE_MS + 1000 * (count - 30)
    assert [row[4] for row in read(data, startingTimestamp=str(since))] == list(range(count - 30, count))
    assert [row[4] for row in read(data, startingOffsets='{"topic":{"0":250}}')] == list(range(250, count))
    assert contents(data) == before


def test_a_log_that_changes_after_planning_is_told(tmp_path):
    data, _ = log_of(tmp_path, segments=2)
    made = plan(str(data))
    first, _ = sorted((data / "topic-0").glob("*.log"))
    first.unlink()
    with pytest.raises(DataLoss, match="after the read was planned"):
        list(read_pieces(made.pieces, include_headers=False, fail_on_data_loss=True))
    rows = samples.rows_in(read_pieces(made.pieces, include_headers=False, fail_on_data_loss=False))
    assert [row[4] for row in rows] == list(range(200, 400))


@pytest.mark.parametrize("task_bytes", [1, 5000, 40_000, 10**9])
def test_pieces_of_any_size_hold_everything_once(tmp_path, task_bytes):
    data, count = log_of(tmp_path, segments=3)
    options = parse_read({"path": str(data), "maxBytesPerTask": str(task_bytes)}, NOW_MS)
    made = make_plan(options)
    put_together = tasks(made, options)
    rows = [
        row[4]
        for task in put_together
        for row in samples.rows_in(read_pieces(task, include_headers=False, fail_on_data_loss=True))
    ]
    assert rows == list(range(count))
    assert len(put_together) >= made.bytes_read / max(task_bytes, 10_000) / 2


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        ({"startingOffsets": '{"topic":{"0":150}}'}, range(150, 200)),
        ({"endingOffsets": '{"topic":{"0":33}}'}, range(33)),
        ({"startingOffsets": '{"topic":{"0":-2}}', "endingOffsets": '{"topic":{"0":-1}}'}, range(200)),
        ({"startingOffsets": '{"topic":{"0":90}}', "endingOffsets": '{"topic":{"0":90}}'}, range(0)),
        (
            {"startingOffsets": '{"topic":{"0":7}}', "endingOffsets": '{"topic":{"0":193}}', "minPartitions": "7"},
            range(7, 193),
        ),
        ({"maxRecordsPerPartition": "9"}, range(200)),
        ({"assign": '{"topic":[0]}'}, range(200)),
        ({"subscribePattern": "top.*"}, range(200)),
        ({"subscribePattern": "other.*"}, range(0)),
    ],
)
def test_offsets_bound_what_is_read(tmp_path, options, offsets):
    data, _ = log_of(tmp_path, segments=1)
    assert [row[4] for row in read(data, **options)] == list(offsets)


def test_offsets_that_are_not_there_are_a_loss_unless_that_may_be(tmp_path):
    data, _ = log_of(tmp_path, segments=1)
    asked = {"endingOffsets": '{"topic":{"0":500}}'}
    with pytest.raises(DataLoss, match="0 to 500 are requested, but only 0 to 200 exist"):
        read(data, **asked)
    assert len(read(data, failOnDataLoss="false", **asked)) == 200


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: None, "is not a folder"),
        (lambda folder: folder.mkdir(), "neither a data folder"),
    ],
)
def test_a_path_that_is_no_log_is_refused(tmp_path, make, message):
    make(tmp_path / "x")
    with pytest.raises(OptionError, match=message):
        plan(str(tmp_path / "x"))


def test_a_topic_that_is_not_there_is_refused(tmp_path):
    data, _ = log_of(tmp_path, segments=1)
    with pytest.raises(OptionError, match="has no orders; it has topic"):
        plan(str(data), subscribe="orders")


def test_tasks_are_as_many_as_asked_for_and_no_byte_counts_twice(tmp_path):
    data, count = log_of(tmp_path, segments=3)
    for asked, least in (({"minPartitions": "9"}, 9), ({"maxRecordsPerPartition": "50"}, count // 50)):
        options = parse_read({"path": str(data), **asked}, NOW_MS)
        made = make_plan(options)
        assert least <= len(tasks(made, options)) <= least + 3
        assert made.bytes_skipped == 0
        assert made.bytes_read == sum(path.stat().st_size for path in (data / "topic-0").glob("*.log"))


def test_a_prefix_is_planned_like_the_folder_that_it_came_from(tmp_path):
    pytest.importorskip("obstore")
    from horolog.client.cli.main import main

    data, count = log_of(tmp_path, segments=4)
    store = tmp_path / "store"
    store.mkdir()
    assert main(["store", "import", str(data), store.as_uri()]) == 0
    part = {"startingOffsets": '{"topic":{"0":333}}', "endingOffsets": '{"topic":{"0":555}}'}
    assert [row[4] for row in read(store, **part)] == list(range(333, 555))
    assert read(store) == read(data)
    options = parse_read({"path": str(store)}, NOW_MS)
    pieces = make_plan(options).pieces
    Path(pieces[-1].path).unlink()
    with pytest.raises(DataLoss, match="it was removed after the read was planned"):
        list(read_pieces(pieces, include_headers=False, fail_on_data_loss=True))
    left = samples.rows_in(read_pieces(pieces, include_headers=False, fail_on_data_loss=False))
    assert [row[4] for row in left] == list(range(count * 3 // 4))
