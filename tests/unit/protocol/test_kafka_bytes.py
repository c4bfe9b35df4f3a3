"""Bytes that Kafka's own classes wrote, one message per name and version: read, and written again byte for byte."""

from pathlib import Path

import pytest

from horolog.protocol.compile import decode, encode
from tests.support.message_values import every_message, every_pair

LINES = (Path(__file__).parents[2] / "data" / "protocol" / "kafka-messages.txt").read_text().splitlines()[1:]
MESSAGES = {cls.__name__: cls for cls in every_message()}


def written_by_kafka() -> dict[tuple[str, int], bytes]:
    rows = [line.split(" ") for line in LINES]
    return {(name, int(version)): bytes.fromhex(body) for name, version, body in rows}


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_kafkas_bytes_are_read_and_written(name: str) -> None:
    for (written, version), body in written_by_kafka().items():
        if written == name:
            message = decode(MESSAGES[name], version, body, to_the_end=True)
            assert encode(message, version) == body, f"v{version}: {message}"


def test_no_version_is_missing() -> None:
    assert set(written_by_kafka()) == {(cls.__name__, version) for cls, version in every_pair()}
