"""A prefix that brokers share is read like the folder that it came from, and no more of it is read than the wanted range needs."""

import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest

pytest.importorskip("obstore")

from benchmarks.process import free_ports
from horolog.broker.bucket.manifest import decode
from horolog.broker.bucket.names import MANIFESTS
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.client.cli.main import main
from horolog.client.values.types import TopicPartition
from horolog.commands.exit_codes import ExitCode
from horolog.pipeline import plan
from horolog.pipeline.base.positions import DataLoss, OptionError
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.reading import prefixes
from horolog.pipeline.reading.offline import make_plan, read_pieces
from horolog.pipeline.reading.prefixes import prefix_at
from horolog.pipeline.sources.topic_tables import topics_of
from horolog.testing import broker_in_thread
from tests.pipeline import samples
from tests.pipeline.clusters import digest
from tests.pipeline.reading.test_offline import NOW_MS, log_of
from tests.support import golden
from tests.support.command import run_typed
from tests.support.style import PROJECT

SEGMENTS = 20
GOLDEN = ("v1-multiseg", "v2-compacted-txn", "v2-delete-records", "v2-empty", "v2-multiseg-maxearly", "v2-txn-multiseg")
LEVELS = ("read_uncommitted", "read_committed")


def read(path, **options):
    options = parse_read({"path": str(path), "includeHeaders": "true", **options}, NOW_MS)
    made = make_plan(options)
    how = {"include_headers": True, "fail_on_data_loss": options.fail_on_data_loss, "place": options.place}
    return samples.rows_in(read_pieces(made.pieces, **how))


def imported(data, folder):
    """The folder of a store with what the data folder has."""
    folder.mkdir()
    assert main(["store", "import", str(data), folder.as_uri()]) == ExitCode.OK
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A data folder with a topic whose times go up a second a record, the store that it was imported into, and the number of records."""
    folder = tmp_path_factory.mktemp("made")
    data, count = log_of(folder, segments=SEGMENTS, batches=40)
    return data, imported(data, folder / "store"), count


@pytest.fixture
def prefix(made, tmp_path):
    """A copy that a test may damage."""
    return shutil.copytree(made[1], tmp_path / "store")


@pytest.fixture
def metas(monkeypatch):
    """The `.meta` objects that are read."""
    found = []
    real = PrefixReader.get
    monkeypatch.setattr(PrefixReader, "get", lambda self, name: found.append(name) or real(self, name))
    return lambda: [one for one in found if one.endswith(".meta")]


def test_a_prefix_has_the_records_of_the_folder_that_it_came_from(made):
    data, store, count = made
    rows = read(data)
    assert len(rows) == count
    assert read(store) == rows
    assert read(store.as_uri()) == rows
    assert plan(str(store)).is_of_prefix


@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_folder_holds_the_same_in_a_prefix(name, golden_root, tmp_path):
    folder = golden.Case(name, golden_root).copy("clean", tmp_path / "data")
    store = imported(tmp_path / "data", tmp_path / "store")
    for level in LEVELS:
        options = {"kafka.isolation.level": level}
        assert read(store, **options) == read(folder, **options), level


def test_a_time_range_reads_only_the_segments_that_can_hold_it(made, metas):
    data, store, count = made
    since, until = samples.BASE_MS + 1000 * (count // 2 + 50), samples.BASE_MS + 1000 * (count // 2 + 80)
    wanted = {"startingTimestamp": str(since), "endingTimestamp": str(until)}
    found = plan(str(store), since, until)
    assert (found.segments_read, found.segments_skipped) == (1, SEGMENTS - 1)
    assert len(metas()) == 1
    assert found.ranges == plan(str(data), since, until).ranges
    assert [row[4] for row in read(store, **wanted)] == list(range(count // 2 + 50, count // 2 + 80))


def test_a_range_over_several_segments_reads_the_meta_of_each_once(made, metas):
    _, store, count = made
    rows = read(store, startingTimestamp=str(samples.BASE_MS + 1000 * (count // 2 + 50)))
    assert [row[4] for row in rows] == list(range(count // 2 + 50, count))
    assert len(metas()) == len(set(metas())) == SEGMENTS // 2


@pytest.mark.parametrize("level", LEVELS)
def test_offsets_inside_of_segments(made, level):
    data, store, count = made
    options = {
        "startingOffsets": '{"topic":{"0":333}}',
        "endingOffsets": f'{{"topic":{{"0":{count - 333}}}}}',
        "kafka.isolation.level": level,
    }
    assert read(store, **options) == read(data, **options)


def test_a_look_up_that_nothing_foresaw_opens_the_partition_again(made, metas, monkeypatch):
    store = made[1]
    monkeypatch.setattr(prefixes, "_asked", lambda *_: iter(()))
    rows = read(store, startingTimestamp=str(samples.BASE_MS + 1000 * 333), endingOffsets='{"topic":{"0":1500}}')
    assert [row[4] for row in rows] == list(range(333, 1500))
    assert len(metas()) == len(set(metas()))


def test_an_object_that_is_gone_is_a_loss(prefix, made):
    options = parse_read({"path": str(prefix)}, NOW_MS)
    pieces = make_plan(options).pieces
    (gone, *_) = sorted(prefix.rglob("*.log"))
    gone.unlink()
    with pytest.raises(DataLoss, match=r"removed after the read was planned; objects stay for horolog.store.delete"):
        list(read_pieces(pieces, include_headers=False, fail_on_data_loss=True))
    left = samples.rows_in(read_pieces(pieces, include_headers=False, fail_on_data_loss=False))
    assert 0 < len(left) < made[2]


def test_what_manifests_name_and_is_gone_is_a_loss_at_once(prefix):
    for one in prefix.rglob("*.meta"):
        one.unlink()
    with pytest.raises(DataLoss, match=r"\.meta: the object is gone"):
        read(prefix)


def test_a_damaged_manifest_is_named(prefix):
    (manifest,) = (one for one in (prefix / MANIFESTS).rglob("*") if one.is_file())
    assert decode(manifest.read_bytes()).segments
    manifest.write_bytes(manifest.read_bytes()[:-5])
    with pytest.raises(DataLoss, match=rf"{manifest.name}.*horolog store verify"):
        read(prefix)


def test_names_are_those_of_the_journal(tmp_path):
    data = tmp_path / "data"
    with broker_in_thread(storage=data) as broker:
        broker.create_topic("empty", 2)
        broker.create_topic("full", 1, retention_ms=-1)
        lines = tmp_path / "lines"
        lines.write_text("1\n2\n")
        assert main(["produce", "full", str(lines), "-b", broker.bootstrap]) == ExitCode.OK
    store = imported(data, tmp_path / "store")
    assert topics_of(parse_read({"path": str(store)}, NOW_MS)) == ["empty", "full"]
    assert read(store, subscribe="empty") == []
    assert [row[1] for row in read(store)] == [b"1", b"2"]
    with pytest.raises(OptionError, match="has no none; it has empty, full"):
        read(store, subscribe="none")
    only = parse_read({"path": str(store), "assign": '{"full":[0]}'}, NOW_MS)
    assert set(make_plan(only).there) == {TopicPartition("full", 0)}


def test_other_places_are_no_prefixes(made):
    for path in (str(made[0]), "memory://host/folder"):
        with prefix_at(parse_read({"path": path}, NOW_MS)) as found:
            assert found is None


def test_a_prefix_in_a_bucket(s3, made, monkeypatch, capsys):
    from tests.support.names import unique

    s3.enter(monkeypatch)
    data, _, count = made
    folder = unique("prefix")
    done = run_typed(capsys, "store", "import", data, s3.url(folder).replace("s3a:", "s3:"), "--endpoint", s3.endpoint)
    assert done.code == ExitCode.OK
    rows = read(data)
    for url in (s3.url(folder), s3.url(folder).replace("s3a:", "s3:")):
        assert read(url, **s3.options) == rows
    with prefix_at(parse_read({"path": s3.url(unique("none")), **s3.options}, NOW_MS)) as found:
        assert found is None
    since = samples.BASE_MS + 1000 * (count - 5)
    assert [row[4] for row in read(s3.url(folder), startingTimestamp=str(since), **s3.options)] == [
        *range(count - 5, count)
    ]


def test_spark_reads_a_prefix(spark, made):
    _, store, count = made
    rows = spark.read.format("horolog").load(str(store))
    assert rows.count() == count
    found = rows.where(f"timestamp >= timestamp_millis({samples.BASE_MS + 1000 * (count - 5)})").collect()
    assert sorted(row["offset"] for row in found) == list(range(count - 5, count))


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_folder_a_prefix_and_the_brokers_over_it_have_one_hash(made, prefix, tmp_path):
    from horolog.pipeline.reading.online import BrokerReader

    with brokers_over(prefix.as_uri(), tmp_path) as address:
        settings = {"kafka.bootstrap.servers": address, "includeHeaders": "true", "subscribe": "topic"}
        reader = BrokerReader(parse_read(settings, NOW_MS))
        through = samples.rows_in(one for task in reader.partitions() for one in reader.read(task))
        there = read(prefix)
    assert len(there) == made[2]
    assert digest([row[:8] for row in through]) == digest(there) == digest(read(made[0]))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_spark_gets_one_hash_from_a_folder_a_bucket_and_the_brokers_over_it(spark, s3, made, tmp_path, monkeypatch):
    from tests.support.names import unique

    s3.enter(monkeypatch)
    url = s3.url(unique("prefix"))
    assert main(["store", "import", str(made[0]), url, "--endpoint", s3.endpoint]) == ExitCode.OK

    def read_by_spark(**options):
        frame = spark.read.format("horolog").options(includeHeaders="true", subscribe="topic", **options).load()
        rows = (tuple(row)[:8] for row in frame.collect())
        return sorted(rows, key=lambda row: row[3:5])

    with brokers_over(url, tmp_path) as address:
        through = read_by_spark(**{"kafka.bootstrap.servers": address})
        there = read_by_spark(path=url, **s3.options)
    here = read_by_spark(path=str(made[0]))
    assert len(here) == made[2]
    assert digest(through) == digest(there) == digest(here)


@contextmanager
def brokers_over(url, folder):
    """Two brokers that share the store, while it is read."""
    ports = dict(enumerate(free_ports(2), 1))
    with ExitStack() as stack:
        for node, port in ports.items():
            command = ["-m", "tests.support.store_broker", url, str(node), str(port), f"{folder}/{node}"]
            process = stack.enter_context(
                subprocess.Popen([sys.executable, *command], cwd=PROJECT, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(process.terminate)
            assert process.stdout.readline() == "ready\n"
        yield ",".join(f"127.0.0.1:{port}" for port in ports.values())
