"""The tool kcat, where it is installed: produce and consume with keys, headers, codecs and offsets by time."""

import json
import shutil
import subprocess

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

KCAT = shutil.which("kcat") or shutil.which("kafkacat")
pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not installed")


def kcat(broker: BrokerProcess, *arguments: str, given: str = "") -> str:
    done = subprocess.run(
        [str(KCAT), "-b", broker.address, *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_lines_come_back(session_broker: BrokerProcess, codec: str) -> None:
    topic = unique("kcat")
    lines = [f"key-{number}:value {number}" for number in range(100)]
    kcat(session_broker, "-P", "-t", topic, "-p", "0", "-K:", "-H", "h=1", "-z", codec, given="\n".join(lines) + "\n")
    read = [
        json.loads(line)
        for line in kcat(session_broker, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-J").splitlines()
    ]
    assert [f"{one['key']}:{one['payload']}" for one in read] == lines
    assert {tuple(one["headers"]) for one in read} == {("h", "1")}
    second = read[50]["ts"]
    found = kcat(session_broker, "-Q", "-t", f"{topic}:0:{second}")
    first = next(one["offset"] for one in read if one["ts"] >= second)
    assert f"offset {first}" in found
