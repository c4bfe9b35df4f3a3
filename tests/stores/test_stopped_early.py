"""A broker process that gets SIGTERM as it founds a cluster and registers: it is no member when it has ended."""

import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("obstore")

from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.journal_objects import decode_log_entry
from horolog.broker.bucket.names import LOG, key
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def members_in(store):
    """The members by the journal."""
    state = BucketState()
    while (path := store / key(LOG, state.number + 1)).exists():
        state = state.apply(decode_log_entry(path.read_bytes(), state.number + 1).entry)
    return sorted(state.members)


@pytest.mark.parametrize("after_ms", [0, 2, 5, 10, 20])
def test_no_member_is_left(tmp_path, after_ms):
    """At several moments behind the first object of the journal: as it registers, before, and after."""
    store = tmp_path / "store"
    store.mkdir()
    settings = {"horolog.store": f"file://{store}", "listeners": "PLAINTEXT://127.0.0.1:0"}
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "horolog", "serve", "--data", str(tmp_path / "data"), *given]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as broker:
        wait_until((store / key(LOG, 0)).exists)
        time.sleep(after_ms / 1000)  # whichever moment it is, the same holds
        broker.send_signal(signal.SIGTERM)
        assert broker.wait() == 0, (tmp_path / "log").read_text()
    assert members_in(store) == []
