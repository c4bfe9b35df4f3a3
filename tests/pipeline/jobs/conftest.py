"""Jobs run as a user types them, in this process: the session that the suite has is used."""

import json

import pytest

from client.cli.main import main


class Ended:
    """How a command ended, and what it wrote."""

    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self):
        return f"<ended with {self.code}: {self.out[:2000]!r} {self.err[:2000]!r}>"

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def run(capsys, session_broker, monkeypatch):
    """`run("profile", "--topic", ...)`: a job at the broker of the tests, times in UTC."""
    monkeypatch.setenv("HOROLOG_BOOTSTRAP", session_broker.address)
    monkeypatch.setenv("HOROLOG_TZ", "UTC")

    def run_job(*words, command=("pipeline",)):
        capsys.readouterr()
        try:
            code = main([*command, *(str(word) for word in words)])
        except SystemExit as ended:
            code = ended.code
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

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
