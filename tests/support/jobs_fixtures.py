"""Jobs run as a user types them, in this process: the session that the suite has is used."""

import json

import pytest

from tests.support.command import run_typed


@pytest.fixture
def run(capsys, session_broker, monkeypatch):
    """`run("profile", "--topic", ...)`: a job at the broker of the tests, times in UTC."""
    monkeypatch.setenv("HOROLOG_BOOTSTRAP", session_broker.address)
    monkeypatch.setenv("HOROLOG_TZ", "UTC")

    def run_job(*words, command=("pipeline",)):
        return run_typed(capsys, *command, *words)

    return run_job


@pytest.fixture
def produce(run, tmp_path):
    """Write records (dictionaries as `horolog produce --format json` takes them) to a topic that is made for them."""

    def write(topic, records, *settings, partitions=1):
        configs = [word for setting in ("retention.ms=-1", *settings) for word in ("--config", setting)]
        made = run("create", topic, "-p", partitions, "--if-not-exists", *configs, command=("topics",))
        assert made.code == 0, made
        path = tmp_path / f"{topic}.json"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        written = run(topic, path, "--format", "json", command=("produce",))
        assert written.code == 0, written

    return write
