"""What a broker of ours leaves behind, seen by the offline commands: sound, decoded, and of the same times as it said itself."""

import json
import socket
import time

import pytest

from horolog.broker.on_record.checked_lines import encode_line
from horolog.broker.on_record.cluster_file import FILE_NAME, VERSION
from tests.support.broker_process import BrokerNotReadyError

HOUR_MS = 3_600_000
NOW_MS = time.time_ns() // 1_000_000
COUNT = 480
TIMES = [NOW_MS - 48 * HOUR_MS + number * 24 * HOUR_MS // COUNT for number in range(COUNT)]
"""A day of records, evenly: from two days ago to yesterday."""
GAP_HOURS = 12
VALUE_BYTES = 2000
RECORDS_IN_A_BATCH = 16384 // VALUE_BYTES + 1
"""What an index can tell apart."""


@pytest.fixture
def running(start_broker):
    return start_broker(log__segment__bytes=20000, log__index__interval__bytes=300)


def fill(horolog, address, tmp_path):
    """A day of records, half a day without, and an hour of some more; and a group that has read ten."""
    late = [TIMES[-1] + GAP_HOURS * HOUR_MS + number * HOUR_MS // 100 for number in range(100)]
    lines = [
        {"key": f"k{number}", "value": "v" * VALUE_BYTES, "timestamp": at} for number, at in enumerate([*TIMES, *late])
    ]
    path = tmp_path / "lines.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    at = ("--bootstrap", address, "--timeout", "30s")
    assert horolog("topics", "create", "orders", *at).code == 0
    assert horolog("produce", "orders", path, "--format", "json", *at).code == 0
    read = horolog("consume", "orders", "--group", "readers", "--max", "10", "-o", "json", *at)
    assert (read.code, len(read.lines)) == (0, 10)
    return at


def counts(document):
    return {one["timestamp"]: one["records"] for one in document["buckets"]}


def test_the_folder_says_what_the_broker_said(running, horolog, tmp_path):
    at = fill(horolog, running.address, tmp_path)
    asked = horolog("timeline", "orders", "--bucket", "1h", "--tz", "UTC", "-o", "json", *at)
    assert asked.code == 0, asked
    assert horolog("timeline", "nothing", *at).code == 4
    while_running = horolog("doctor", running.data, "-o", "json")
    assert (while_running.code, while_running.json["in_use"]) == (0, True)
    assert running.stop() == 0

    online = asked.json
    offline = horolog("timeline", "orders", "--dir", running.data, "--bucket", "1h", "--tz", "UTC", "-o", "json").json
    assert online["records"] == offline["records"] == COUNT + 100
    (told,), (exact,) = offline["gaps"], online["gaps"]
    assert all(abs(told[border] - exact[border]) <= HOUR_MS for border in ("from_timestamp", "to_timestamp"))
    seen, true = counts(offline), counts(online)
    assert all(abs(seen.get(start, 0) - true[start]) <= 2 * RECORDS_IN_A_BATCH for start in true)
    assert sum(seen.values()) == sum(true.values())

    sound = horolog("doctor", running.data, "-o", "json")
    assert (sound.code, sound.json["summary"]["damaged"], sound.json["in_use"]) == (0, 0, False)
    dumped = horolog("dump", "--print-data-log", "-o", "json", running.data / "orders-0", running.data)
    assert (dumped.code, dumped.err) == (0, "")
    assert sum(line["type"] == "record" for line in dumped.lines) == COUNT + 100
    kinds = {line["kind"] for line in dumped.lines if line["type"] == "file"}
    assert {"log", "offset-index", "time-index", "seals", "cluster", "meta-properties", "offset-checkpoint"} <= kinds


def test_committed_offsets_are_decoded_by_the_name_of_the_folder(running, horolog, tmp_path):
    fill(horolog, running.address, tmp_path)
    assert running.stop() == 0
    folders = [
        folder for folder in running.data.glob("__consumer_offsets-*") if next(folder.glob("*.log")).stat().st_size
    ]
    decoded = [
        line["decoded"]
        for folder in folders
        for line in horolog("dump", "--deep", "-o", "json", folder).lines
        if line["type"] == "record"
    ]
    offsets = [one for one in decoded if one["kind"] == "OffsetCommitKey"]
    assert {"group": "readers", "topic": "orders", "partition": 0} in [one["key"] for one in offsets]
    assert 10 in [one["value"]["offset"] for one in offsets if one["value"] is not None]
    raw = horolog("dump", "--deep", "--raw", "-o", "json", *folders).lines
    assert all("decoded" not in line for line in raw)


def test_a_cluster_file_of_a_later_release_is_told_of_and_left_alone(running, horolog):
    assert horolog("topics", "create", "orders", "--bootstrap", running.address).code == 0
    assert running.stop() == 0
    path = running.data / FILE_NAME
    path.write_text(encode_line({"version": 9}))
    told = f"{FILE_NAME} has version 9, this release knows versions up to {VERSION}"
    for words in (("adopt", running.data, "--dry-run"), ("doctor", "--repair", running.data), ("dump", running.data)):
        ended = horolog(*words)
        assert (ended.code != 0, told in ended.out + ended.err) == (True, True), ended
    with pytest.raises(BrokerNotReadyError, match=told):
        running.start()
    assert "Traceback" not in running.log()
    assert path.read_text() == encode_line({"version": 9})


def test_a_start_that_fails_leaves_the_cluster_file_alone(running, horolog):
    words = ("topics", "create", "orders", "--config", "retention.ms=5", "--bootstrap", running.address)
    assert horolog(*words).code == 0
    assert running.stop() == 0
    before = (running.data / FILE_NAME).read_bytes()
    with socket.create_server(("127.0.0.1", 0)) as other:
        running.settings["horolog.http.listen"] = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(BrokerNotReadyError):
            running.start()
    assert (running.data / FILE_NAME).read_bytes() == before


def test_a_folder_without_topics_lacks_nothing(running, horolog):
    assert running.stop() == 0
    running.start()
    assert running.stop() == 0
    assert "WARNING" not in running.log()
