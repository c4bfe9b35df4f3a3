"""The pytest plugin, as somebody else's tests use it: in this interpreter, and from the wheel in an environment of its own."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
pytest_plugins = ["pytester"]

TESTS = """
import pytest
from confluent_kafka import Producer


def send(broker):
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    times = []
    producer.produce("t", b"x", on_delivery=lambda error, message: times.append((error, message.timestamp()[1])))
    assert producer.flush(20) == 0
    return times[0]


@pytest.mark.horolog(clock=1_700_000_000_000, log_message_timestamp_type="LogAppendTime")
def test_marked(horolog_broker):
    assert send(horolog_broker) == (None, 1_700_000_000_000)
    horolog_broker.clock.advance(seconds=1)
    assert send(horolog_broker) == (None, 1_700_000_001_000)


def test_plain(horolog_broker, horolog):
    assert horolog_broker.port != horolog.port
    assert send(horolog)[0] is None


def test_shared(horolog):
    horolog.create_topic("made-here")
"""


@pytest.mark.parametrize("storage", ["memory", "folder"])
def test_fixtures_and_mark(pytester, storage):
    pytester.makepyfile(TESTS)
    temporary = pytester.path / "temporary"
    flags = [f"--horolog-storage={storage}", f"--basetemp={temporary}", "-p", "no:asyncio"]
    run = pytester.runpytest_inprocess("-p", "horolog.testing.plugin", "--strict-markers", *flags)
    run.assert_outcomes(passed=3)
    assert bool(list(temporary.rglob("meta.properties"))) == (storage == "folder")


def test_the_plugin_alone_loads_no_broker():
    code = "import sys, horolog.testing.plugin; print(any(m.startswith('horolog.broker.app') for m in sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


@pytest.mark.slow
def test_the_wheel_brings_the_plugin(tmp_path):
    """An environment that sees this one's libraries but not this checkout, with the wheel unpacked into it."""
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", str(tmp_path), str(PROJECT)]
    subprocess.run(pip, check=True, timeout=110)
    (wheel,) = tmp_path.glob("horolog-*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    (tmp_path / "test_theirs.py").write_text(TESTS)
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path / 'installed')!r}]; import pytest;"
        f" sys.exit(pytest.main(['-q', '--strict-markers', '--rootdir', {str(tmp_path)!r}, {str(tmp_path)!r}]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 passed" in run.stdout
