"""`horolog doctor` finds damage, foretells exactly what recovery does, and has it done without losing a byte for good."""

import io
import json
import os
import shutil
from dataclasses import replace

import pytest

from horolog.base import pins
from horolog.broker.log.indexes import offset_index
from horolog.broker.log.storage import RealStorage, file_locks
from horolog.broker.on_record.checked_lines import encode_line
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic
from horolog.client.cli.doctor import action_lines, finding_line
from horolog.commands.console import Console
from horolog.protocol.records.entries import iter_records
from tests.support import golden

CASES = sorted({name for name, _ in golden.names()})


@pytest.fixture
def data(golden_root, tmp_path):
    """A data folder with one partition of five segments, as Kafka left it."""
    folder = tmp_path / "data"
    golden.Case("v2-multiseg", golden_root).copy("clean", folder)
    return folder


def partition(data):
    return data / "topic-0"


def logs(data):
    return sorted(partition(data).glob("*.log"))


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def offsets(data):
    """The offsets of all records that can be read, hole or not."""
    from horolog.broker.log.integrity import Batch, scan

    found = []
    for path in logs(data):
        file = RealStorage().open(str(path))
        for span in scan(file.pread, path.stat().st_size, first_offset=int(path.stem), end_offset=2**62):
            if isinstance(span, Batch):
                found += [record.offset for record in iter_records(span.data)]
        file.close()
    return found


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def examine(horolog, data, *words):
    ended = horolog("doctor", data, "-o", "json", *words)
    return ended, json.loads(ended.out)


def kinds(document):
    return [one["kind"] for each in document["partitions"] for one in each["findings"]]


@pytest.mark.parametrize("name", CASES)
def test_folders_that_kafka_left_are_sound_and_stay_as_they_are(name, golden_root, tmp_path, horolog):
    golden.Case(name, golden_root).copy("clean", tmp_path / "data")
    before = contents(tmp_path)
    ended, document = examine(horolog, tmp_path / "data")
    assert (ended.code, document["findings"], kinds(document)) == (0, [], [])
    assert document["partitions"][0]["state"] == "ok"
    assert contents(tmp_path) == before


def test_damage_inside_is_told_with_its_offsets_and_times(data, horolog):
    flip(logs(data)[0], 400)
    before = contents(data)
    ended, document = examine(horolog, data)
    (report,) = document["partitions"]
    (found,) = [one for one in report["findings"] if one["kind"] == "damage"]
    assert ended.code == 3
    assert report["state"] == "damaged"
    assert (found["position"], found["size_bytes"], found["first_offset"], found["last_offset"]) == (339, 113, 3, 3)
    assert (found["time_before"], found["time_after"]) == (1600000000020, 1600000000040)
    assert [one["size_bytes"] for one in report["actions"] if one["action"] == "set aside"] == [113]
    assert contents(data) == before


def test_a_torn_tail_is_told_and_cut_by_repair_and_kept_aside(data, horolog):
    whole = logs(data)[-1].read_bytes()
    logs(data)[-1].write_bytes(whole[:-5])
    readable = offsets(data)
    (data / ".kafka_cleanshutdown").unlink()  # after a clean stop it is known what was there, and the tail is damage
    ended, document = examine(horolog, data)
    (cut,) = [one for one in document["partitions"][0]["actions"] if one["action"] == "cut"]
    assert ended.code == 3
    assert "torn tail" in kinds(document)
    ended, document = examine(horolog, data, "--repair")
    assert (ended.code, document["repaired"], document["partitions"][0]["state"]) == (0, True, "ok")
    assert logs(data)[-1].stat().st_size == cut["to_bytes"]
    (kept,) = partition(data).glob("*.torn")
    assert logs(data)[-1].read_bytes() + kept.read_bytes() == whole[:-5]
    assert offsets(data) == readable


def test_repair_does_what_was_foretold_and_keeps_every_good_record(data, horolog):
    flip(logs(data)[0], 400)
    logs(data)[-1].write_bytes(logs(data)[-1].read_bytes()[:-5])
    readable = offsets(data)
    old = contents(data)
    _, foretold = examine(horolog, data)
    ended, _ = examine(horolog, data, "--repair")
    assert ended.code == 0
    assert offsets(data) == readable
    new = contents(data)
    for action in foretold["partitions"][0]["actions"]:
        name = f"topic-0/{action['file'].rpartition('/')[2]}"
        if action["action"] == "removed":
            copies = [kept for path, kept in new.items() if path.startswith(name) and path.endswith(".aside")]
            assert (name in new, copies) == (False, [old[name]])
        elif action["action"] == "made anew":
            assert new[name] != old[name]
        else:
            size = action["to_bytes"] if action["action"] in {"cut", "corrected"} else action["size_bytes"]
            assert len(new[name]) == size
    changed = {name for name in old if name.startswith("topic-0/0") and new.get(name) != old[name]}
    told = {f"topic-0/{one['file'].rpartition('/')[2]}" for one in foretold["partitions"][0]["actions"]}
    assert changed <= told


def test_damage_that_was_dealt_with_is_known_and_no_alert(data, horolog):
    flip(logs(data)[0], 400)
    assert examine(horolog, data, "--repair")[0].code == 0
    ended, document = examine(horolog, data)
    assert (ended.code, kinds(document)) == (0, ["known damage"])
    assert document["partitions"][0]["set_aside"]
    (kept,) = partition(data).glob("*.damaged")
    assert horolog("dump", kept).code == 0
    kept.unlink()
    assert examine(horolog, data)[0].code == 3


def test_damage_in_a_segment_that_a_seal_vouches_for_is_found_and_repaired(data, horolog):
    logs(data)[-1].write_bytes(logs(data)[-1].read_bytes()[:-5])
    assert examine(horolog, data, "--repair")[0].code == 0
    sealed = logs(data)[1]
    times = sealed.stat().st_mtime_ns
    flip(sealed, 300)
    import os

    os.utime(sealed, ns=(times, times))
    ended, document = examine(horolog, data)
    assert (ended.code, "damage" in kinds(document)) == (3, True)
    readable = offsets(data)
    ended, document = examine(horolog, data, "--repair")
    assert (ended.code, set(kinds(document))) == (0, {"known damage"})
    assert offsets(data) == readable


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: flip(path, 7),
        lambda path: path.write_bytes(path.read_bytes() * 2),
    ],
)
def test_an_index_that_is_not_that_of_its_log_is_made_anew(data, horolog, damage):
    index = min(partition(data).glob("*.index"))
    before = offsets(data)
    damage(index)
    ended, document = examine(horolog, data)
    assert ended.code == 3
    assert "index" in kinds(document)
    assert examine(horolog, data, "--repair")[0].code == 0
    assert examine(horolog, data)[0].code == 0
    assert len(index.read_bytes()) % offset_index.ENTRY.size == 0
    assert offsets(data) == before


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), lambda path: path.write_bytes(bytes(2400))])
def test_a_time_index_without_entries_is_found_although_nothing_in_it_is_wrong(data, horolog, damage):
    damage(min(partition(data).glob("*.timeindex")))
    ended, document = examine(horolog, data)
    assert (ended.code, "lookups skip the segment" in document["partitions"][0]["findings"][0]["problem"]) == (3, True)
    assert examine(horolog, data, "--repair")[0].code == 0
    first = min(partition(data).glob("*.index"))
    first.write_bytes(offset_index.ENTRY.pack(1, 113) + first.read_bytes())
    ended, document = examine(horolog, data)
    assert (ended.code, kinds(document)) == (3, ["index"])
    assert "not the one that was written with this log" in document["partitions"][0]["findings"][0]["problem"]


@pytest.mark.parametrize("lost", ["*.log", "*[0-9].*"], ids=["the logs", "all segments"])
def test_a_partition_without_its_log_is_told_beside_the_others(data, horolog, golden_root, lost):
    golden.Case("v1-gzip-ct", golden_root).copy("clean", data.parent / "other")
    shutil.copytree(data.parent / "other" / "topic-0", data / "sound-0")
    for path in partition(data).glob(lost):
        path.unlink()
    ended, document = examine(horolog, data)
    states = {one["name"]: one["state"] for one in document["partitions"]}
    assert states["sound-0"] == "ok"
    if lost == "*.log":
        assert (ended.code, states["topic-0"]) == (3, "damaged")
        problems = [found["problem"] for each in document["partitions"] for found in each["findings"]]
        assert problems == ["is missing, although its index is here: its records are gone"] * 5
    ended, _ = examine(horolog, data, "--repair")
    assert ended.code == 0
    assert examine(horolog, data)[0].code == 0


def test_a_checkpoint_that_cannot_be_read_is_a_finding_of_the_folder(data, horolog):
    (data / "replication-offset-checkpoint").write_bytes(b"0\nmany\n")
    ended, document = examine(horolog, data)
    assert (ended.code, len(document["findings"])) == (3, 1)
    assert document["findings"][0]["file"].endswith("replication-offset-checkpoint")
    assert examine(horolog, data, "--repair")[0].code == 0
    (kept,) = data.glob("replication-offset-checkpoint.*.aside")
    assert kept.read_bytes() == b"0\nmany\n"


def test_a_folder_in_use_is_only_looked_at(data, horolog, monkeypatch):
    # The holder is of this process: a look drops its POSIX lock, and another one waits.
    monkeypatch.setattr(file_locks, "LOOKS", 3)
    flip(logs(data)[0], 400)
    lock = RealStorage().lock(str(data / ".lock"))
    try:
        before = contents(data)
        ended, document = examine(horolog, data)
        assert (ended.code, document["in_use"], document["partitions"][0]["actions"]) == (3, True, [])
        assert "a broker runs on this folder" in ended.err
        refused = horolog("doctor", data, "--repair")
        assert (refused.code, "in use by a running broker" in refused.err) == (1, True)
        assert contents(data) == before
    finally:
        lock.release()


def test_topics_can_be_chosen(data, horolog, golden_root):
    shutil.copytree(partition(data), data / "other-0")
    flip(logs(data)[0], 400)
    assert examine(horolog, data, "--topic", "other")[0].code == 0
    assert examine(horolog, data, "--topic", "topic")[0].code == 3
    assert horolog("doctor", data, "--topic", "none").code == 4


def test_text_says_it_in_sentences(data, horolog):
    flip(logs(data)[0], 400)
    shown = horolog("doctor", data, "--tz", "UTC").out
    assert (
        "damage: 00000000000000000000.log: 113 bytes at 339 are not records (the checksum is wrong): offsets 3 to 3, "
        in shown
    )
    assert "written after 2020-09-13T12:26:40.020+00:00 and before 2020-09-13T12:26:40.040+00:00" in shown
    assert "recovery would: set 113 bytes aside in " in shown
    assert "1 partition, 5 segments, 6780 bytes read: 1 damaged" in shown


def test_the_file_of_topics_is_checked_line_by_line(data, horolog):
    (data / "horolog-cluster").write_bytes(b'00000000 {"version": 1}\n')
    ended, document = examine(horolog, data)
    assert ended.code == 3
    assert "checksum" in document["findings"][0]["problem"]


def test_what_is_no_data_folder(horolog, tmp_path, golden_root):
    assert horolog("doctor", tmp_path / "nothing").code == 4
    ended = horolog("doctor", golden_root / "v2-txn" / "clean")
    assert (ended.code, "the folder of one partition" in ended.err) == (4, True)
    ended, document = examine(horolog, tmp_path)
    assert (ended.code, document["partitions"]) == (0, [])


def test_partitions_that_are_empty_cost_next_to_nothing(start_broker, horolog, monkeypatch):
    """Each has 20 MiB of room for indexes, of which no byte was written: it was a tenth of a second for each."""
    from horolog.broker.log.storage import ReadOnlyStorage

    count, read = 200, []
    broker = start_broker()
    assert horolog("topics", "create", "many", "--partitions", count, "-b", broker.address).code == 0
    broker.kill()
    rooms = list(broker.data.glob("many-*/*index"))
    assert sum(path.stat().st_size for path in rooms) > count * 16 << 20
    monkeypatch.setattr(ReadOnlyStorage, "count", lambda _storage, _path, size_bytes: read.append(size_bytes))
    ended = horolog("doctor", broker.data, "-o", "json")
    assert (ended.code, ended.json["summary"]["partitions"]) == (0, count)
    assert sum(read) < count * 1000


def test_files_that_a_read_has_pinned_are_shown_and_no_damage(horolog, data):
    owner = pins.Owner.of(os.getpid())
    (data / "horolog-cluster").touch()
    pins.pin(pins.folder_of(data), replace(owner, process="one before"), [[str(logs(data)[0])]])
    _, document = examine(horolog, data, "--topic", "topic")
    (found,) = document["pins"]
    assert (found["files"], found["held_bytes"], found["is_over"]) == (1, 0, True)
    assert found["folder"].startswith(str(data / "horolog-pins"))
    assert document["summary"]["damaged"] == 0
    said = horolog("doctor", data).out
    assert (
        f"1 file of a scan of {owner.user}, pid {owner.pid}, which has ended (the next read removes it, or remove the folder)"
        in said
    )


def test_what_was_repaired_is_shown_with_what_it_was(data, horolog):
    flip(logs(data)[0], 400)
    min(partition(data).glob("*.timeindex")).unlink()
    shown = horolog("doctor", data, "--repair", "--tz", "UTC").out
    assert "  was: damage: 00000000000000000000.log: 113 bytes at 339 are not records" in shown
    assert "  done: set 113 bytes aside in " in shown
    assert "known damage" in shown


@pytest.mark.parametrize(
    ("action", "line"),
    [
        ({"action": "cut", "from_bytes": 9, "to_bytes": 5}, "cut x.log from 9 to 5 bytes"),
        ({"action": "corrected", "places": [{"size_bytes": 2}, {"size_bytes": 3}]}, "correct 5 bytes of x.log"),
        ({"action": "set aside", "size_bytes": 7}, "set 7 bytes aside in x.log"),
        ({"action": "removed", "reason": "torn"}, "remove x.log (torn, a copy is kept)"),
        ({"action": "removed", "reason": "left over"}, "remove x.log (left over)"),
        ({"action": "written"}, "write x.log"),
        ({"action": "made"}, "create x.log"),
    ],
)
def test_an_action_is_one_sentence(action, line):
    assert action_lines([{"file": "/data/t-0/x.log", **action}]) == [line]


def test_index_files_are_one_line_together():
    anew = [{"action": "made anew", "file": f"/data/t-0/{number}.index"} for number in range(3)]
    assert action_lines(anew) == ["rebuild 3 index files from their logs"]
    assert action_lines(anew[:1]) == ["rebuild 0.index"]


def test_findings_without_an_end_or_a_time_are_sentences_too():
    console = Console(io.StringIO(), io.StringIO(), io.StringIO(), {"TZ": "UTC"})
    finding = {"kind": "damage", "file": "/t-0/x.log", "problem": "why", "position": 5, "size_bytes": 3}
    finding |= {"first_offset": 7, "last_offset": None, "time_before": None, "time_after": None}
    assert finding_line(finding, console) == "damage: x.log: 3 bytes at 5 are not records (why): offsets 7 to the end"


def test_small_files_of_a_partition_are_written_anew(data, horolog):
    checkpoint = partition(data) / "leader-epoch-checkpoint"
    checkpoint.write_bytes(b"0\n7\nnonsense\n")
    (partition(data) / "horolog-seals").write_bytes(b"nonsense")
    ended, document = examine(horolog, data)
    assert ended.code == 3
    assert {"leader-epoch-checkpoint"} <= {
        found["file"].rpartition("/")[2] for each in document["partitions"] for found in each["findings"]
    }
    assert examine(horolog, data, "--repair")[0].code == 0
    assert checkpoint.read_bytes() == b"0\n1\n0 0\n", "the epochs that records have"
    assert examine(horolog, data)[0].code == 0


def test_a_folder_of_a_newer_release_is_left_to_it(data, horolog):
    (data / "horolog-cluster").write_text(encode_line({"version": 99}))
    ended = horolog("doctor", data)
    assert (ended.code, "has version 99" in ended.err) == (1, True), ended


def test_settings_that_no_broker_takes_do_not_keep_a_folder_from_being_examined(data, horolog):
    topic = StoredTopic("topic", bytes(range(16)), 1, {"retention.ms": "soon"})
    file = ClusterFile(RealStorage(), str(data), lambda: [str(data)])
    file.save([topic], {}, 0, {}, {})
    ended, document = examine(horolog, data)
    assert document["partitions"][0]["state"] == "ok", ended


# -- the prefix of a cluster


@pytest.fixture
def store(data, tmp_path, horolog):
    """The folder of a store with the topic of the data folder."""
    pytest.importorskip("obstore")
    (tmp_path / "store").mkdir()
    assert horolog("store", "import", str(data), f"file://{tmp_path}/store").code == 0
    return tmp_path / "store"


def test_a_whole_prefix(store, data, horolog):
    done = horolog("doctor", f"file://{store}", "-o", "json")
    assert (done.code, done.err) == (0, "")
    (found,), (origin,) = (
        json.loads(one.out)["partitions"] for one in (done, horolog("doctor", str(data), "-o", "json"))
    )
    assert found["next_offset"] == origin["next_offset"]
    assert (found["findings"], found["actions"]) == ([], [])


def test_a_damaged_prefix_is_not_repaired(store, horolog):
    log = min(store.rglob("*.log"))
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    done = horolog("doctor", f"file://{store}", "--topic", "topic")
    assert done.code == 3
    assert "1 damaged" in done.out
    assert "recovery would" not in done.out
    refused = horolog("doctor", f"file://{store}", "--repair")
    assert refused.code == 2
    assert "objects of a prefix are never changed" in refused.err
    assert horolog("doctor", f"file://{store}", "--topic", "none").code == 4
