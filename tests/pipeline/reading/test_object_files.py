"""Segment files in a real S3 server are read as on a disk, and no more of them is fetched than a range needs."""

import os
import shutil

import pytest

from horolog.broker.log.storage import FileMissing, StorageFault
from horolog.pipeline import plan
from horolog.pipeline.base.positions import DataLoss, OptionError
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.reading.object_files import LEAST_BYTES, ObjectFiles, is_same
from horolog.pipeline.reading.offline import make_plan, read_pieces
from horolog.pipeline.stores.object_stores import Place
from tests.pipeline import samples
from tests.pipeline.reading.test_offline import NOW_MS, log_of
from tests.support import golden
from tests.support.names import unique


def uploaded(s3, folder):
    """The folder as objects, by the server's own means; its URL."""
    import obstore

    name = unique("data")
    store = Place.of(s3.url(name), s3.options, {}).open()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            obstore.put(store, f"{name}/{folder.name}/{path.relative_to(folder)}", path.read_bytes())
    return s3.url(f"{name}/{folder.name}")


def read(path, **options):
    options = parse_read({"path": str(path), "includeHeaders": "true", **options}, NOW_MS)
    made = make_plan(options)
    batches = read_pieces(made.pieces, include_headers=True, fail_on_data_loss=True, place=options.place)
    return samples.rows_in(batches)


@pytest.mark.parametrize(("name", "stage"), golden.names()[::4])
def test_a_golden_folder_holds_the_same_as_on_a_disk(s3, name, stage, golden_root, tmp_path):
    folder = golden.Case(name, golden_root).copy(stage, tmp_path)
    url = uploaded(s3, folder)
    for level in ("read_uncommitted", "read_committed"):
        options = {"kafka.isolation.level": level}
        assert read(url, **options, **s3.options) == read(folder, **options)


def test_a_time_range_fetches_its_ranges_only(s3, tmp_path):
    data, count = log_of(tmp_path, segments=20, batches=40)
    url = uploaded(s3, data)
    since, until = samples.BASE_MS + 1000 * (count // 2), samples.BASE_MS + 1000 * (count // 2 + 30)
    here, there = plan(str(data), since, until), plan(url, since, until, **s3.options)
    assert [piece._replace(path="") for piece in there.pieces] == [piece._replace(path="") for piece in here.pieces]
    log_bytes = sum(path.stat().st_size for path in data.rglob("*.log"))
    assert there.bytes_read < log_bytes / 100
    assert there.looked_at_bytes < log_bytes / 5
    whole = plan(url, **s3.options)
    assert whole.bytes_read == log_bytes
    small = sum(path.stat().st_size for path in data.rglob("*") if path.is_file() and path.suffix != ".log")
    segments = len(list(data.rglob("*.log")))
    assert whole.looked_at_bytes <= small + segments * 8192, "of a log only the edges, by which its seal knows it"
    rows = read(url, startingTimestamp=str(since), endingTimestamp=str(until), **s3.options)
    assert [row[4] for row in rows] == list(range(count // 2, count // 2 + 30))


def test_what_tasks_fetch_is_what_the_plan_says(s3, tmp_path, monkeypatch):
    data, _ = log_of(tmp_path)
    url = uploaded(s3, data)
    options = parse_read({"path": url, "startingOffsets": '{"topic":{"0":333}}', **s3.options}, NOW_MS)
    made = make_plan(options)
    fetched = []
    real = ObjectFiles.fetch
    monkeypatch.setattr(ObjectFiles, "fetch", lambda files, *range_: fetched.append(range_[2]) or real(files, *range_))
    list(read_pieces(made.pieces, include_headers=False, fail_on_data_loss=True, place=options.place))
    assert sum(fetched) == made.bytes_read


@pytest.mark.long
def test_spark_reads_it(spark, s3, tmp_path, capfd):
    data, count = log_of(tmp_path)
    url = uploaded(s3, data)
    rows = spark.read.format("horolog").options(**s3.options).load(url)
    assert rows.count() == count
    found = rows.where(f"timestamp >= timestamp_millis({samples.BASE_MS + 1000 * (count - 5)})").collect()
    assert sorted(row["offset"] for row in found) == list(range(count - 5, count))
    rows.explain(extended=True)
    said = capfd.readouterr()
    assert s3.secret_key not in said.out + said.err


def test_options_of_stores_are_for_urls(s3, tmp_path):
    with pytest.raises(OptionError, match=r"fs.s3a.access.key is only for URLs"):
        parse_read({"path": str(tmp_path), **s3.options}, NOW_MS)
    with pytest.raises(OptionError, match="neither a store nor fsspec supports nowhere://"):
        parse_read({"path": "nowhere://n/a"}, NOW_MS)
    with pytest.raises(OptionError, match="is not a folder"):
        plan(s3.url(unique("nothing")), **s3.options)
    hadoop = {f"spark.hadoop.{name}": value for name, value in s3.options.items()}
    place = parse_read({"path": s3.url("x"), **hadoop}, NOW_MS).place
    assert place == Place.of(s3.url("x"), s3.options, os.environ)
    assert s3.secret_key not in repr(parse_read({"path": s3.url("x"), **hadoop}, NOW_MS))


def test_what_is_gone_or_shorter_is_a_fault(s3, tmp_path):
    data, _ = log_of(tmp_path, segments=2)
    url = uploaded(s3, data)
    options = parse_read({"path": url, **s3.options}, NOW_MS)
    made = make_plan(options)
    files = ObjectFiles(options.place, LEAST_BYTES)
    path = made.pieces[0].path
    size, _ = files.stat(path)
    assert files.end_of_data(path) == size
    with pytest.raises(StorageFault, match="ends 10 bytes before"):
        files.open(path).pread(20, size - 10)
    for ask in (files.stat, files.read_all, files.list_dir):
        with pytest.raises(FileMissing):
            ask(f"{url}/none")
    with pytest.raises(StorageFault, match="only read"):
        files.create(path)
    file = files.open(path)
    assert file.pread(10, 0) + file.pread(0, 5) + file.pread(5, 10) == files.open_apart(path).pread(15, 0)
    shutil.rmtree(s3.bucket / url.removeprefix(s3.url("")) / "topic-0")
    with pytest.raises(FileMissing, match="the file is gone"):
        files.fetch(path, 0, 10)
    with pytest.raises(DataLoss, match="changed or removed after the read was planned"):
        list(read_pieces(made.pieces, include_headers=False, fail_on_data_loss=True, place=options.place))


def test_another_file_in_the_place_of_a_planned_one_is_told(s3, tmp_path):
    """As retention and a new upload leave it: of the same name and size, and so with whole batches at the same places."""
    import obstore

    data, count = log_of(tmp_path)
    url = uploaded(s3, data)
    options = parse_read({"path": url, **s3.options}, NOW_MS)
    made = make_plan(options)
    how = {"include_headers": False, "fail_on_data_loss": True, "place": options.place, "versions": made.versions}
    assert len(samples.rows_in(read_pieces(made.pieces, **how))) == count
    planned, other = (made.pieces[number].path.removeprefix(s3.url("")) for number in (3, 4))
    store = Place.of(url, s3.options, {}).open()
    obstore.put(store, planned, bytes(obstore.get(store, other).bytes()))
    with pytest.raises(DataLoss, match=r"version .* was planned, but the store now has.*changed or removed after"):
        list(read_pieces(made.pieces, **how))


def test_versions_that_are_told_in_parts_are_compared_by_these():
    assert is_same("100 17 abc", "100 17 abc")
    assert is_same("100 17 abc", "100 19 abc")
    assert is_same("100 17", "100 18 abc")
    assert not is_same("100 17 abc", "100 17 abd")
    assert not is_same("100 17", "100 19 abc")
    assert not is_same("100 17 abc", "101 17 abc")
