"""Runs commands as a user types them, in this process with captured output."""

import json

import pytest

from horolog.client.cli.main import main


class Ended:
    """A command's exit code and output."""

    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self):
        return f"<ended with {self.code}: {self.out[:2000]!r} {self.err[:2000]!r}>"

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def lines(self):
        """The parsed JSON lines of the output."""
        return [json.loads(line) for line in self.out.splitlines()]


def run_typed(capsys, *words):
    """Run the command line with these words."""
    capsys.readouterr()
    try:
        code = main([str(word) for word in words])
    except SystemExit as ended:
        code = ended.code
    captured = capsys.readouterr()
    return Ended(code, captured.out, captured.err)


@pytest.fixture
def horolog(capsys):
    """Run the command line with these words."""

    def run(*words):
        return run_typed(capsys, *words)

    return run
