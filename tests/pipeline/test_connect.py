"""Spark Connect: the source and the catalogue work in a client of a server, too."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from horolog.testing import broker_in_thread

pytest.importorskip("pyspark")
from tests.pipeline import connect_client

ROOT = Path(__file__).parents[2]
NEEDED = ("pyspark", "pandas", "grpc", "grpc_status", "google.rpc", "zstandard")


def is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not all(map(is_there, NEEDED)), reason="pyspark[connect] is not installed")
def test_a_client_writes_reads_streams_and_asks_by_sql(tmp_path):
    with broker_in_thread() as broker:
        done = subprocess.run(
            [sys.executable, connect_client.__file__, broker.bootstrap, str(tmp_path)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    found = {name: value for line in done.stdout.splitlines() for name, value in json.loads(line).items()}
    count = connect_client.COUNT
    assert found == {
        "first": count,
        "thread": 2 * count,
        "stream": 2 * count,
        "behind": {"records": 0, "seconds": 0.0},
        "tables": ["copy", "shop"],
        "sql": 2 * count - 10,
    }
