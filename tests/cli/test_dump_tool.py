"""`horolog dump` and Kafka's own dump tool say the same of the same files: of Kafka's, and of those that horolog wrote.

Needs Java and the jars of real releases (`python -m benchmarks.kafka fetch VERSION`).
"""

import re
import subprocess

import pytest

from benchmarks import kafka
from horolog.client.cli.dumping.files import Question, dump_file
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.record import Record
from tests.support import golden
from tests.vendor.wire_prober.core import Case, Ctx, Target

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]

MAIN = {"3.9.2": "kafka.tools.DumpLogSegments", "4.3.1": "org.apache.kafka.tools.DumpLogSegments"}
BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*position: (\d+) (\w+Time): (-?\d+) size: (\d+) .*crc: (\d+) isvalid: (\w+)"
)
RECORD = re.compile(r"\| offset: (\d+) (\w+Time): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+)")
BASE_MS = 1_600_000_000_000


@pytest.fixture(scope="module", params=sorted(MAIN))
def tool(request):
    """Kafka's tool of one release."""
    try:
        libs = kafka.libs(request.param)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {request.param}: {error}")

    def run(*files):
        command = ["java", "-cp", f"{libs}/*", MAIN[request.param], "--deep-iteration", "--print-data-log", "--files"]
        ended = subprocess.run(
            [*command, ",".join(map(str, files))],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            check=True,
        )
        return ended.stdout

    return run


def theirs(text):
    batches = [tuple(found) for found in BATCH.findall(text)]
    return batches, [tuple(found) for found in RECORD.findall(text)]


def ours(*files):
    items = [item for file in files for item in dump_file(str(file), Question(deep=True, with_data=True))]
    assert not [item for item in items if item["type"] in {"damage", "problem"}]
    batches = [
        (
            *(
                str(item[name])
                for name in ("base_offset", "last_offset", "count", "position", "timestamp_type", "timestamp")
            ),
            *(str(item[name]) for name in ("size_bytes", "crc")),
            str(item["is_valid"]).lower(),
        )
        for item in items
        if item["type"] == "batch"
    ]
    names = ("offset", "timestamp_type", "timestamp", "key_size", "value_size")
    records = [tuple(str(item[name]) for name in names) for item in items if item["type"] == "record"]
    return batches, records


@pytest.mark.parametrize("name", ["v2-batches", "v2-txn-multiseg", "v2-zstd-lat", "v2-multiseg"])
def test_of_what_kafka_wrote(name, tool, tmp_path):
    case = golden.Case(name, golden.unpack(tmp_path))
    files = sorted(case.stage(case.stages[-1]).glob("*.log"))
    found = ours(*files)
    assert found == theirs(tool(*files))
    assert found[0]


def test_of_what_horolog_wrote(tool, start_broker, horolog):
    broker = start_broker(log__segment__bytes=4000, log__index__interval__bytes=300)
    assert horolog("topics", "create", "dumped", "--bootstrap", broker.address).code == 0
    host, _, port = broker.address.rpartition(":")
    wire = Ctx(Target(host, int(port)), Case("dump", "", None, {}, "", False))
    try:
        for number in range(40):
            codec = list(Codec)[number % 5]
            records = [
                Record(n, BASE_MS + number * 10 + n, 0, b"k" * (n % 3) or None, b"value" * n)
                for n in range(number % 7 + 1)
            ]
            answer = wire.produce(9, "dumped", bytes(encode_batch(records, codec)), acks=-1)
            assert answer["error_code"] == 0
    finally:
        wire.close()
    assert broker.stop() == 0
    folder = broker.data / "dumped-0"
    logs, indexes = sorted(folder.glob("*.log")), sorted([*folder.glob("*.index"), *folder.glob("*.timeindex")])
    assert len(logs) > 1
    found = ours(*logs)
    assert found == theirs(tool(*logs))
    said = tool(*indexes)
    assert "Mismatches" not in said
    assert "Out of order" not in said
    shown = [
        (one["offset"], one["position"])
        for path in indexes
        for one in dump_file(str(path), Question())
        if "position" in one and one["type"] == "entry"
    ]
    assert shown == [
        (int(offset), int(position))
        for offset, position in re.findall(r"^offset: (\d+) position: (\d+)", said, re.MULTILINE)
        if position != "0"
    ]
