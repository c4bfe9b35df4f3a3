"""The arguments of `serve` become settings, and bad ones end in exit code 2 with a message."""

import argparse
import platform
import subprocess
import sys

import pytest

from horolog.broker.cluster.left_folders import NoRoomToMerge
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.workers import serve
from horolog.protocol.records.walk import IS_COMPILED
from horolog.version import __version__
from tests.support.style import PROJECT


def parse(*argv):
    parser = argparse.ArgumentParser()
    serve.configure(parser)
    return parser.parse_args(argv)


def test_flags_are_settings_and_set_has_the_last_word():
    arguments = parse(
        "--data", "/d", "--listen", "127.0.0.1:0", "--set", "log.dirs=/e", "--set", "a=b=c", "--set", "a= d"
    )
    assert serve.flags_of(arguments) == {"log.dirs": "/e", "listeners": "PLAINTEXT://127.0.0.1:0", "a": " d"}


@pytest.mark.parametrize(
    "argv", [("--set", "no-value"), ("--set", "=x"), ("--listen", "9092"), ("--listen", "host:port")]
)
def test_flags_that_cannot_be_read(argv):
    with pytest.raises(SettingsError, match=r"expected|HOST:PORT"):
        serve.flags_of(parse(*argv))


@pytest.mark.parametrize(
    ("argv", "environ", "said"),
    [
        (("--set", "log.segment.bytes=x"), {}, "log.segment.bytes='x'"),
        ((), {"KAFKA_NUM_PARTITIONS": "0"}, "num.partitions='0'"),
        (("--config", "/no/such/file"), {}, "/no/such/file"),
        (("--set", "nothing"), {}, "KEY=VALUE"),
    ],
)
def test_bad_settings_end_with_a_message_and_code_2(argv, environ, said, capsys):
    assert serve.serve(parse(*argv), environ) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("horolog: ")
    assert said in captured.err


def test_the_broker_runs_with_the_settings_of_flags_and_environment_until_it_is_told_to_stop(monkeypatch):
    ran = []
    monkeypatch.setattr("horolog.broker.server.app.run", lambda loaded, warnings: ran.append((loaded, warnings)) or 7)
    assert serve.serve(parse("--set", "num.partitions=3"), {"KAFKA_LOG_SEGMENT_BYTES": "1048576"}) == 7
    ((loaded, warnings),) = ran
    assert (loaded.num_partitions, loaded.log_segment_bytes, list(warnings)) == (3, 1048576, [])


@pytest.mark.parametrize(("workers", "cores", "ran"), [("1", 4, "app"), ("0", 1, "app"), ("0", 4, 4), ("3", 4, 3)])
def test_several_workers_are_run_by_their_supervisor(workers, cores, ran, monkeypatch):
    monkeypatch.setattr("horolog.broker.workers.cores.cores", lambda: cores)
    monkeypatch.setattr("horolog.broker.server.app.run", lambda loaded, warnings: "app")
    monkeypatch.setattr("horolog.broker.workers.supervisor.run", lambda loaded, warnings, count: count)
    assert serve.serve(parse("--set", f"horolog.workers={workers}"), {}) == ran


def test_a_store_in_the_settings_asks_for_a_broker_over_it(monkeypatch):
    monkeypatch.setattr("horolog.broker.server.store_run.run_as_set", lambda loaded, warnings: loaded.horolog_store)
    assert serve.serve(parse("--set", "horolog.store=s3://b/p"), {}) == "s3://b/p"


def test_workers_over_a_store_have_a_supervisor_too(monkeypatch):
    monkeypatch.setattr("horolog.broker.workers.supervisor.run", lambda loaded, warnings, count: count)
    assert serve.serve(parse("--set", "horolog.store=s3://b/p", "--set", "horolog.workers=2"), {}) == 2


def test_what_several_workers_left_on_a_full_disk_is_served_by_one(monkeypatch):
    def run_alone(loaded, warnings):
        raise NoRoomToMerge("no space left")

    monkeypatch.setattr("horolog.broker.server.app.run", run_alone)
    monkeypatch.setattr("horolog.broker.workers.supervisor.run", lambda loaded, warnings, count: (count, warnings))
    count, warnings = serve.serve(parse(), {})
    assert (count, ["no space left" in line for line in warnings]) == (1, [True])


def test_one_process_imports_nothing_of_workers():
    code = (
        "import sys; from horolog.broker.server import app; from horolog.broker.workers import serve;"
        "several = ('.broker.workers.', '.cluster.worker_', '.cluster.settling');"
        "loaded = {name for name in sys.modules if any(one in name for one in several)};"
        "sys.exit(loaded != {'horolog.broker.workers.serve'})"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=False, timeout=60).returncode == 0


def test_the_command_line_is_that_of_the_module(monkeypatch):
    monkeypatch.setattr(serve, "serve", lambda arguments, environ: arguments.data)
    assert serve.main(["--data", "/d"]) == "/d"


def test_the_first_line_of_the_log_tells_what_runs(tmp_path):
    blocked = tmp_path / "a file"
    blocked.touch()
    words = [sys.executable, "-m", "horolog.broker", "--listen", "127.0.0.1:0", "--data", blocked / "data"]
    ended = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    form = "compiled" if IS_COMPILED else "plain Python"
    wanted = f"horolog {__version__} on Python {platform.python_version()}, the hot path is {form}"
    assert (ended.returncode, wanted in ended.stderr.splitlines()[0]) == (1, True), ended.stderr
