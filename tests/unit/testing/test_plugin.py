"""The pytest plugin, as somebody else's tests use it: in this interpreter, and from the wheel in an environment of its own."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def of_this_checkout(monkeypatch):
    """In processes of their own."""
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))


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


@pytest.mark.horolog(brokers=2, num_partitions=2)
def test_several(horolog_cluster):
    assert send(horolog_cluster)[0] is None
    assert set(horolog_cluster.until_led("t").values()) == {1, 2}


def test_schemas(horolog_registry):
    assert horolog_registry.register("t-value", '"string"') == 1
"""


@pytest.mark.parametrize("storage", ["memory", "folder"])
def test_fixtures_and_mark(pytester, storage):
    pytester.makepyfile(TESTS)
    temporary = pytester.path / "temporary"
    flags = [f"--horolog-storage={storage}", f"--basetemp={temporary}", "-p", "no:asyncio"]
    run = pytester.runpytest_inprocess("-p", "horolog.testing.plugin", "--strict-markers", *flags)
    run.assert_outcomes(passed=5)
    assert bool(list(temporary.rglob("meta.properties"))) == (storage == "folder")


ON_THE_LOOP = """
import asyncio
import pytest
from aiokafka import AIOKafkaProducer


async def use(broker):
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        await producer.send_and_wait("t", b"x")
    await broker.expect("t", count=1, value="x")
    assert broker.broker.settings.num_partitions == 3
    assert asyncio.get_running_loop() is broker.broker._loop


{mark}
@pytest.mark.horolog(num_partitions=3)
async def test_it({fixture}):
    await use({fixture})
"""
OF_ANYIO = """

@pytest.fixture
def anyio_backend():
    return "{backend}"
"""


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_a_broker_on_the_loop_of_pytest_asyncio(pytester, mode):
    pytester.makepyfile(ON_THE_LOOP.format(mark="@pytest.mark.asyncio", fixture="horolog_async"))
    scope = "asyncio_default_fixture_loop_scope=function"
    flags = ["-p", "horolog.testing.plugin", "-o", f"asyncio_mode={mode}", "-o", scope]
    pytester.runpytest_inprocess(*flags).assert_outcomes(passed=1)


@pytest.mark.parametrize(("backend", "outcome"), [("asyncio", {"passed": 1}), ("trio", {"errors": 1})])
def test_a_broker_on_the_loop_of_anyio(pytester, backend, outcome):
    pytest.importorskip("anyio")
    if backend == "trio":
        pytest.importorskip("trio")
    text = ON_THE_LOOP.format(mark="@pytest.mark.anyio", fixture="horolog_anyio") + OF_ANYIO.format(backend=backend)
    pytester.makepyfile(text)
    scope = "asyncio_default_fixture_loop_scope=function"
    run = pytester.runpytest_inprocess("-p", "horolog.testing.plugin", "-o", "asyncio_mode=strict", "-o", scope)
    run.assert_outcomes(**outcome)


def test_another_backend_of_anyio_is_refused(pytester):
    pytester.makepyfile(
        "import pytest\n"
        "from horolog.testing import plugin\n"
        "async def test_it():\n"
        "    with pytest.raises(pytest.UsageError, match='not on trio'):\n"
        "        await anext(plugin.horolog_anyio.__wrapped__(None, 'trio'))\n"
    )
    run = pytester.runpytest_inprocess("-p", "horolog.testing.plugin", "-o", "asyncio_mode=auto")
    run.assert_outcomes(passed=1)


SNAPSHOT = """
def test_kept(horolog_broker):
    horolog_broker.create_topic("t")
    horolog_broker.expect_snapshot("t", "kept/t.txt")
"""


def test_snapshots_are_written_when_asked_for(pytester, monkeypatch):
    monkeypatch.delenv("HOROLOG_UPDATE_SNAPSHOTS", raising=False)
    pytester.makepyfile(SNAPSHOT)
    flags = ["-p", "horolog.testing.plugin", "-p", "no:asyncio"]
    pytester.runpytest_subprocess(*flags).assert_outcomes(failed=1)
    monkeypatch.setitem(os.environ, "HOROLOG_UPDATE_SNAPSHOTS", "0")  # what the option sets is taken back
    pytester.runpytest_inprocess(*flags, "--horolog-update-snapshots").assert_outcomes(passed=1)
    monkeypatch.delenv("HOROLOG_UPDATE_SNAPSHOTS")
    assert (pytester.path / "kept" / "t.txt").read_text().startswith("horolog snapshot 1\ntopic: t\n")
    pytester.runpytest_subprocess(*flags).assert_outcomes(passed=1)


def test_the_plugin_alone_loads_no_broker():
    code = (
        "import sys, horolog.testing.plugin; print(any(m.startswith('horolog.broker.server.app') for m in sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


@pytest.mark.long
@pytest.mark.slow
def test_the_wheel_brings_the_plugin(tmp_path):
    """An environment that sees this one's libraries but not this checkout, with the wheel unpacked into it."""
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", str(tmp_path), str(PROJECT)]
    subprocess.run(pip, env=os.environ | {"HOROLOG_COMPILED": "0"}, check=True, timeout=110)
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
    assert "5 passed" in run.stdout
