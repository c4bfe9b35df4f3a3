"""Errors of a reading become findings."""

import logging

from horolog.broker.bucket import wal_index
from horolog.broker.prefix.findings import damaged
from horolog.broker.transfer.logged_losses import losses_in


def test_each_error_is_a_finding_once_and_nothing_else_is(caplog):
    findings = []
    with caplog.at_level(logging.INFO), losses_in(findings):
        for _ in range(2):
            wal_index.log.error("%s is lost: its mark names it", "wal/1-1/7")
        wal_index.log.warning("the store is available again")
    assert findings == [damaged("wal/1-1/7", "is lost: its mark names it")]
    assert caplog.text == ""
    wal_index.log.error("%s: behind the reading", "wal/1-1/8")
    assert len(findings) == 1
    assert "behind the reading" in caplog.text
