"""`horolog pipeline JOB`: every job has its arguments and its module."""

import argparse
from types import SimpleNamespace

import pytest

from horolog.commands.arguments import Parser
from horolog.pipeline.jobs import command
from horolog.pipeline.jobs.command import JOBS, configure, run


@pytest.fixture
def parser():
    made = Parser(prog="horolog pipeline")
    configure(made)
    return made


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_the_examples_of_a_job_are_good(parser, job):
    for example in job.examples:
        words = example.split()
        assert words[:3] == ["horolog", "pipeline", job.name]
        assert parser.parse_args(words[2:]).action == job.name


def test_a_job_is_expected(parser, capsys):
    with pytest.raises(SystemExit):
        parser.parse_args([])
    assert "JOB" in capsys.readouterr().err


def test_the_module_of_a_job_runs_it(monkeypatch):
    imported = []

    def import_module(name):
        imported.append(name)
        return SimpleNamespace(run=lambda arguments, console: (arguments.action, console))

    monkeypatch.setattr(command, "import_module", import_module)
    assert run(argparse.Namespace(action="lag"), "console") == ("lag", "console")
    assert imported == ["horolog.pipeline.jobs.lag"]
