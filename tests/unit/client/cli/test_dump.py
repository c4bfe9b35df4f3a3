"""`horolog dump` shows what Kafka's own tool shows of files that Kafka wrote, and says clearly how damaged ones are wrong."""

import re
import shutil

import pytest
from crc32c import crc32c

from horolog.client.cli.dumping import indexes
from tests.support import golden

CASES = sorted({name for name, _ in golden.names()})
PAIR = re.compile(r"(\w+): (OptionalLong\.empty|OptionalLong\[-?\d+\]|\S*)")


def of_type(lines, kind):
    return [line for line in lines if line["type"] == kind]


def kafkas(case):
    """What DumpLogSegments printed of the last stage: file name to lines."""
    sections = {}
    name = ""
    for line in (
        (case.root / case.name / f"dump-{case.stages[-1]}.txt").read_bytes().decode(errors="replace").split("\n")
    ):
        if line.startswith("Dumping "):
            name = line.removeprefix("Dumping ").rpartition("/")[2]
            sections[name] = []
        elif line:
            sections[name].append(line)
    return sections


def fields(line):
    return dict(PAIR.findall(line.split(" key: ")[0].split(" payload: ")[0]))


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_wrong_with_what_kafka_wrote(name, golden_root, horolog):
    case = golden.Case(name, golden_root)
    for stage in case.stages:
        ended = horolog("dump", "--print-data-log", case.stage(stage))
        assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize("name", CASES)
def test_batches_and_records_are_those_that_kafkas_tool_shows(name, golden_root, horolog):
    case = golden.Case(name, golden_root)
    compared = 0
    for file, lines in kafkas(case).items():
        if not file.endswith(".log"):
            continue
        ours = horolog("dump", "--print-data-log", "-o", "json", case.stage(case.stages[-1]) / file).lines
        theirs = [fields(line) for line in lines if "isvalid" in line or line.startswith("| ")]
        batches = [line for line in theirs if "baseOffset" in line]
        assert [batch_numbers(one) for one in of_type(ours, "batch")] == [kafka_batch(one) for one in batches]
        records = [line for line in theirs if "baseOffset" not in line]
        assert [record_numbers(one) for one in of_type(ours, "record")] == [kafka_record(one) for one in records]
        compared += len(theirs)
    assert compared or "empty" in name or "retention" in name or "compacted" in name


def batch_numbers(item):
    names = ("base_offset", "last_offset", "count", "base_sequence", "last_sequence", "producer_id", "producer_epoch")
    more = ("partition_leader_epoch", "position", "timestamp", "size_bytes", "magic", "crc")
    flags = [item["is_transactional"], item["is_control"], item["is_valid"], item["codec"], item["timestamp_type"]]
    horizon = item["delete_horizon_ms"]
    return [*(item[name] for name in (*names, *more)), *flags, horizon]


def kafka_batch(line):
    names = ("baseOffset", "lastOffset", "count", "baseSequence", "lastSequence", "producerId", "producerEpoch")
    kind = "CreateTime" if "CreateTime" in line else "LogAppendTime"
    more = ("partitionLeaderEpoch", "position", kind, "size", "magic", "crc")
    flags = [line[name] == "true" for name in ("isTransactional", "isControl", "isvalid")]
    horizon = re.findall(r"\d+", line["deleteHorizonMs"])
    codec = line["compresscodec"].lower()
    return [*(int(line[name]) for name in (*names, *more)), *flags, codec, kind, int(horizon[0]) if horizon else None]


def record_numbers(item):
    return [item["offset"], item["timestamp_type"], item["timestamp"], item["key_size"], item["value_size"]]


def kafka_record(line):
    kind = next(name for name in ("CreateTime", "LogAppendTime", "NoTimestampType") if name in line)
    key_size = line.get("keySize", line.get("keysize", "-1"))
    value_size = line.get("valueSize", line.get("payloadsize"))
    return [int(line["offset"]), kind, int(line[kind]), int(key_size), int(value_size)]


@pytest.mark.parametrize("name", CASES)
def test_index_entries_are_those_that_kafkas_tool_shows(name, golden_root, horolog):
    case = golden.Case(name, golden_root)
    for file, lines in kafkas(case).items():
        if not file.endswith((".index", ".timeindex")):
            continue
        ours = of_type(horolog("dump", "-o", "json", case.stage(case.stages[-1]) / file).lines, "entry")
        first, second = ("offset", "position") if file.endswith(".index") else ("timestamp", "offset")
        theirs = [fields(line) for line in lines if line.startswith(f"{first}: ")]
        shown = [(int(one[first]), int(one[second])) for one in theirs]
        if file.endswith(".timeindex") and shown and shown[0] == (-1, 0):
            shown = []  # what Kafka prints of a time index without an entry
        assert [(one[first], one[second]) for one in ours] == shown


def test_transaction_indexes_and_snapshots_are_those_that_kafkas_tool_shows(golden_root, horolog):
    case = golden.Case("v2-txn-multiseg", golden_root)
    compared = 0
    for file, lines in kafkas(case).items():
        if file.endswith((".txnindex", ".snapshot")):
            ours = of_type(horolog("dump", "-o", "json", case.stage(case.stages[-1]) / file).lines, "entry")
            names = ("producerId", "firstOffset" if file.endswith("txnindex") else "producerEpoch", "lastOffset")
            snake = [re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name) for name in names]
            assert [[one[name] for name in snake] for one in ours] == [
                [int(fields(line)[name]) for name in names] for line in lines
            ]
            compared += len(ours)
    assert compared


def test_text_names_times_in_the_zone_asked_for(golden_root, horolog):
    log = golden_root / "v2-none-ct" / "clean" / f"{0:020d}.log"
    shown = horolog("dump", "--print-data-log", "--tz", "Asia/Tokyo", log).out
    assert shown.startswith(f"Dumping {log} (log, ")
    assert "CreateTime: 1600000000000 (2020-09-13T21:26:40.000+09:00)" in shown
    assert "key: k0 payload: first" in shown


def test_records_are_shown_only_if_asked_for_and_data_only_then(golden_root, horolog):
    log = golden_root / "v2-none-ct" / "clean" / f"{0:020d}.log"
    plain = horolog("dump", "-o", "json", log).lines
    deep = horolog("dump", "-o", "json", "--deep-iteration", log).lines
    assert not of_type(plain, "record")
    assert of_type(plain, "batch") == of_type(deep, "batch")
    assert of_type(deep, "record")
    assert all("value" not in one and "value_base64" not in one for one in of_type(deep, "record"))


@pytest.fixture
def damaged(golden_root, tmp_path):
    """A copy of a partition's folder that a test may damage."""
    return shutil.copytree(golden_root / "v2-multiseg" / "clean", tmp_path / "topic-0")


def logs(folder):
    return sorted(folder.glob("*.log"))


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_a_flipped_bit_is_reported_with_its_place_and_what_follows_is_shown(damaged, horolog):
    log = logs(damaged)[0]
    before = of_type(horolog("dump", "-o", "json", log).lines, "batch")
    hit = before[1]
    flip(log, hit["position"] + hit["size_bytes"] - 1)
    ended = horolog("dump", "-o", "json", log)
    (damage,) = of_type(ended.lines, "damage")
    assert ended.code == 3
    assert (damage["position"], damage["size_bytes"]) == (hit["position"], hit["size_bytes"])
    assert (damage["after_offset"], damage["place"], damage["problem"]) == (
        before[0]["last_offset"],
        "inside",
        "the checksum is wrong",
    )
    assert of_type(ended.lines, "batch") == [before[0], *before[2:]]
    assert "1 place is damaged" in ended.err


def test_a_torn_tail_is_reported(damaged, horolog):
    log = logs(damaged)[-1]
    log.write_bytes(log.read_bytes()[:-7])
    ended = horolog("dump", log)
    assert ended.code == 3
    assert "!! damage" in ended.out
    assert "place: tail" in ended.out


def test_zeros_behind_the_end_are_room_and_no_damage(damaged, horolog):
    log = logs(damaged)[-1]
    size = log.stat().st_size
    log.write_bytes(log.read_bytes() + bytes(5000))
    ended = horolog("dump", "-o", "json", log)
    assert ended.code == 0
    assert [(one["position"], one["size_bytes"]) for one in of_type(ended.lines, "padding")] == [(size, 5000)]


@pytest.mark.parametrize(
    ("suffix", "position", "said"),
    [
        ("index", 3, "is not in the batch"),
        ("index", 7, "no batch begins at"),
        ("timeindex", 7, "the latest time up to offset"),
        ("timeindex", 11, "the latest time up to offset|after the end"),
    ],
)
@pytest.mark.parametrize("option", [(), ("--verify-index-only",)])
def test_an_index_that_disagrees_with_its_log_is_a_problem(damaged, horolog, suffix, position, said, option):
    index = min(damaged.glob(f"*.{suffix}"))
    data = bytearray(index.read_bytes())
    data[position] ^= 64
    index.write_bytes(data)
    ended = horolog("dump", *option, "-o", "json", index)
    assert ended.code == 3
    assert all(re.search(said + "|does not come after", one["problem"]) for one in of_type(ended.lines, "problem"))
    assert bool(of_type(ended.lines, "entry")) == (not option)


def test_the_sanity_check_does_without_the_log(damaged, horolog):
    index = min(damaged.glob("*.index"))
    index.with_suffix(".log").unlink()
    assert horolog("dump", "--index-sanity-check", index).code == 0
    assert horolog("dump", index).code == 3
    index.write_bytes(index.read_bytes()[:-3])
    ended = horolog("dump", "--index-sanity-check", "-o", "json", index)
    assert ended.code == 3
    assert of_type(ended.lines, "problem")[0]["problem"].endswith("5 are left over")


def test_batches_that_are_too_large_are_a_problem(damaged, horolog):
    assert horolog("dump", "--max-message-size", 10_000, *logs(damaged)).code == 0
    assert horolog("dump", "--max-message-size", 70, *logs(damaged)).code == 3


def test_reading_stops_where_it_is_told(damaged, horolog):
    log = logs(damaged)[0]
    assert len(of_type(horolog("dump", "-o", "json", "--max-bytes", 1, log).lines, "batch")) == 1


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata"])
def test_small_files_that_are_broken_say_why(damaged, horolog, name):
    (damaged / name).write_bytes(b"0\n7\nnonsense\n")
    ended = horolog("dump", "-o", "json", damaged / name)
    assert ended.code == 3
    assert of_type(ended.lines, "problem")[0]["problem"]


def test_the_checkpoints_of_a_data_folder(golden_root, horolog):
    folder = golden_root / "v2-txn" / "clean" / "logdir"
    lines = horolog("dump", "-o", "json", folder).lines
    kinds = {line["kind"] for line in of_type(lines, "file")}
    assert kinds == {"offset-checkpoint", "meta-properties", "clean-shutdown"}
    assert {"topic": "v2-txn", "partition": 0, "offset": 21} in [
        {name: one[name] for name in ("topic", "partition", "offset")}
        for one in of_type(lines, "entry")
        if "topic" in one
    ]


@pytest.mark.parametrize("words", [["nothing/here.log"], ["README.md"]])
def test_what_is_not_there_or_is_no_such_file_is_not_found(words, horolog, tmp_path):
    (tmp_path / "README.md").touch()
    ended = horolog("dump", tmp_path / words[0])
    assert (ended.code, ended.out) == (4, "")
    assert "horolog dump: error: " in ended.err


def test_a_folder_without_logs_is_not_found(horolog, tmp_path):
    assert horolog("dump", tmp_path).code == 4


def test_wrong_usage(horolog, golden_root):
    log = golden_root / "v2-txn" / "clean" / f"{0:020d}.log"
    assert horolog("dump").code == 2
    assert horolog("dump", "--raw", "--offsets-decoder", log).code == 2
    assert horolog("dump", "--max-bytes", "x", log).code == 2


@pytest.mark.parametrize("is_sound", [True, False])
def test_bytes_that_were_set_aside_are_shown_with_where_they_were(tmp_path, horolog, is_sound):
    data = b"bytes of a log"
    crc = crc32c(data) ^ (not is_sound)
    path = tmp_path / f"{7:020d}.log.100.5-9.{crc:08x}.damaged"
    path.write_bytes(data)
    ended = horolog("dump", "-o", "json", path)
    (entry,) = of_type(ended.lines, "entry")
    assert ended.code == (0 if is_sound else 3)
    assert (entry["base_offset"], entry["position"], entry["first_offset"], entry["last_offset"]) == (7, 100, 5, 9)
    assert bytes.fromhex(entry["first_bytes"]) == data
    problems = [one["problem"] for one in of_type(ended.lines, "problem")]
    assert problems == ([] if is_sound else [f"its checksum is {crc32c(data):08x}, its name says {crc:08x}"])


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path, horolog):
    (tmp_path / f"{0:020d}.index").mkdir()
    ended = horolog("dump", "-o", "json", tmp_path / f"{0:020d}.index")
    assert ended.code in {3, 4}


def test_room_behind_the_entries_of_an_index_is_no_problem(damaged, horolog):
    index = min(damaged.glob("*.index"))
    size = index.stat().st_size
    index.write_bytes(index.read_bytes() + bytes(80))
    ended = horolog("dump", "-o", "json", index)
    assert ended.code == 0
    assert [(one["position"], one["size_bytes"]) for one in of_type(ended.lines, "padding")] == [(size, 80)]


@pytest.mark.parametrize(
    ("kind", "entries", "said"),
    [
        ("offset-index", [(-5, 0)], "entry 0: offset -5 is negative"),
        ("offset-index", [(5, 10), (5, 20)], "entry 1: offset 5 does not come after 5"),
        ("time-index", [(9, 3), (9, 4)], "entry 1: timestamp 9 does not come after 9"),
    ],
)
def test_an_index_that_is_wrong_in_itself_says_where(tmp_path, horolog, kind, entries, said):
    suffix = "index" if kind == "offset-index" else "timeindex"
    path = tmp_path / f"{0:020d}.{suffix}"
    path.write_bytes(b"".join(indexes.ENTRY_OF[kind].pack(*entry) for entry in entries))
    ended = horolog("dump", "--index-sanity-check", "-o", "json", path)
    assert ended.code == 3
    assert said in [one["problem"] for one in of_type(ended.lines, "problem")]


@pytest.mark.parametrize(
    ("suffix", "change", "said"),
    [
        ("index", lambda data: data[:4] + (340).to_bytes(4, "big") + data[8:], "no batch begins at"),
        ("index", lambda data: data + indexes.ENTRY_OF["offset-index"].pack(10**6, 10**6), "the log ends before"),
        ("index", lambda data: b"\0\0\0\x63" + data[4:8], "is not in the batch at"),
        (
            "timeindex",
            lambda data: data + indexes.ENTRY_OF["time-index"].pack(2**50, 10**6),
            "is after the end of the log",
        ),
        ("timeindex", lambda data: indexes.ENTRY_OF["time-index"].pack(5, 3) + data[12:], "lookups skip some"),
        (
            "timeindex",
            lambda data: data[:-12] + indexes.ENTRY_OF["time-index"].pack(2**50, 10),
            "the latest time up to",
        ),
    ],
)
def test_an_index_that_says_other_than_its_log(damaged, horolog, suffix, change, said):
    index = min(damaged.glob(f"*.{suffix}"))
    index.write_bytes(change(index.read_bytes()))
    ended = horolog("dump", "-o", "json", index)
    assert ended.code == 3
    assert any(said in one["problem"] for one in of_type(ended.lines, "problem")), ended.out


# -- the prefix of a cluster


@pytest.fixture
def prefix(golden_root, tmp_path, horolog):
    """The URL of a store with one topic, which came from a folder."""
    pytest.importorskip("obstore")
    golden.Case("v2-multiseg", golden_root).copy("clean", tmp_path / "data")
    (tmp_path / "store").mkdir()
    url = f"file://{tmp_path}/store"
    assert horolog("store", "import", str(tmp_path / "data"), url).code == 0
    return url


def test_a_topic_of_a_prefix_is_shown_like_its_folder(prefix, tmp_path, horolog):
    here = horolog("dump", str(tmp_path / "data" / "topic-0"), "--deep", "-o", "json")
    there = horolog("dump", prefix, "topic", "--deep", "-o", "json")
    assert there.code == here.code == 0
    places = [{one["offset"]: one["timestamp"] for one in of_type(done.lines, "record")} for done in (here, there)]
    assert places[0] == places[1]
    assert {one["path"].rpartition("/")[0] for one in of_type(there.lines, "file")} == {f"{prefix}/topic-0"}


@pytest.mark.parametrize(
    ("names", "code", "said"),
    [
        ((), 2, "name topics, partitions or files"),
        (("none",), 4, "has no none"),
        (("topic-0/none",), 4, "has no topic-0"),
    ],
)
def test_what_a_prefix_does_not_have(prefix, horolog, names, code, said):
    done = horolog("dump", prefix, *names)
    assert done.code == code
    assert said in done.err
