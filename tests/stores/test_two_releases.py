"""Brokers of an earlier release and of this one over one store: all are upgraded under load, one after the other, and then taken back."""

import os
import shutil
import subprocess
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

from horolog.broker.prefix.findings import is_fault
from horolog.broker.prefix.verifying import verify
from horolog.stores.opening import open_store
from tests.stores.test_three_brokers import NODES, PARTITIONS, WITHIN_S, three_brokers
from tests.support.style import PROJECT
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.faults]

EARLIER = "3783bc2d"
"""A commit whose brokers were the newest ones on 28 November 2026. The first release takes its place once there is one."""
FOLDER_VARIABLE = "HOROLOG_EARLIER_RELEASE"
"""The folder of another release to take instead."""


@pytest.fixture
def earlier(tmp_path):
    """The folder of an earlier release."""
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return Path(given)
    if shutil.which("git") is None or not (PROJECT / ".git").exists():
        pytest.skip(f"an earlier release comes from the history, which is not here; {FOLDER_VARIABLE} names a folder")
    archive = tmp_path / "earlier.tar"
    command = [
        "git",
        "archive",
        "--output",
        archive,
        EARLIER,
        "horolog",
        "broker",
        "protocol",
        "client",
        "tests/support",
    ]
    if subprocess.run(command, cwd=PROJECT, capture_output=True, check=False).returncode:
        pytest.skip(f"the history does not have {EARLIER}; {FOLDER_VARIABLE} names a folder of an earlier release")
    folder = tmp_path / "earlier"
    shutil.unpack_archive(archive, folder)
    return folder


@pytest.mark.timeout(600)
def test_brokers_of_two_releases_share_a_store_while_one_replaces_the_other(tmp_path, earlier):
    with three_brokers(tmp_path, {"t": PARTITIONS}, release=earlier) as (cluster, _), ExitStack() as stack:
        producing = threading.Thread(target=cluster.produce)
        producing.start()
        stack.callback(producing.join)
        stack.callback(cluster.is_over.set)
        wait_until(lambda: len(cluster.told_since(0)) == PARTITIONS)
        for release in (PROJECT, earlier):
            cluster.release = release
            for node in NODES:
                if node == 2:  # the others end in order, and hand over what they lead
                    cluster.kill(node)
                else:
                    cluster.end(node)
                cluster.start(node)
                started = time.monotonic()
                wait_until(lambda: len(cluster.told_since(started)) == PARTITIONS)  # noqa: B023
        cluster.is_over.set()
        producing.join(WITHIN_S)
        assert cluster.errors == []
        found = cluster.consumed()
        assert {place: value for place, (value, _) in cluster.acknowledged.items()} == {
            place: found.get(place) for place in cluster.acknowledged
        }
        assert len(set(found.values())) == len(found), "a record is there twice"
    verified = verify(open_store(f"file://{tmp_path}/store"))
    assert [one for one in verified.findings if is_fault(one)] == []
