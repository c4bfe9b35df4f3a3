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
        (88, 0, 2, "StreamsGroupHeartbeat(88): 0 to 2 [usable: UNSUPPORTED]"),
        (999, 0, 2, "UNKNOWN(999): 0 to 2"),
    ],
)
def test_versions_are_told_with_the_newest_that_our_client_would_use(key, first, last, told):
    assert _line(key, first, last) == f"\t{told}"
