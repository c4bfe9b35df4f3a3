"""The line for each API that a broker serves."""

import pytest

from horolog.client.cli.kafka_scripts.broker_api_versions import _line


@pytest.mark.parametrize(
    ("key", "first", "last", "told"),
    [
        (1, 4, 18, "Fetch(1): 4 to 18 [usable: 18]"),
        (47, 0, 0, "OffsetDelete(47): 0 [usable: 0]"),
        (1, 4, 99, "Fetch(1): 4 to 99 [usable: 18]"),
        (1, 98, 99, "Fetch(1): 98 to 99 [usable: UNSUPPORTED]"),
        (80, 0, 2, "AddRaftVoter(80): 0 to 2 [usable: UNSUPPORTED]"),
        (999, 0, 2, "UNKNOWN(999): 0 to 2"),
    ],
)
def test_versions_are_told_with_the_newest_that_our_client_would_use(key, first, last, told):
    assert _line(key, first, last) == f"\t{told}"


def test_each_broker_says_what_it_serves(scripts):
    ended = scripts.run("kafka-broker-api-versions")
    assert ended.code == 0
    assert ended.lines[0].startswith(f"{scripts.address} (id: ")
    assert ended.lines[0].endswith(" rack: null isFenced: false) -> (")
    assert any(line.startswith("\tProduce(0): ") for line in ended.lines)
    assert ended.lines[-1] == ")"
    assert ended.lines[-2][-1] == "]", "the last line has no comma"
