"""Every job is a function of the name that the page gives it, and takes what the page says that it takes."""

import inspect
import re

import pytest

from horolog.pipeline import jobs
from horolog.pipeline.jobs.command import JOBS
from tests.support.style import PROJECT

PAGE = (PROJECT / "docs" / "pipeline.md").read_text()
SHOWN = {
    name: [word.strip() for word in arguments.split(",")]
    for name, arguments in re.findall(r"^\| `(\w+)\(([\w, =]+)\)` \|$", PAGE, re.MULTILINE)
}


def test_the_page_shows_every_job_and_no_other():
    assert sorted(SHOWN) == sorted(job.name for job in JOBS)
    (imported,) = re.findall(r"`from horolog.pipeline.jobs import ([^`]+)`", PAGE)
    assert sorted(imported.split(", ")) == sorted(
        name for name in jobs.__all__ if not inspect.ismodule(getattr(jobs, name))
    )


@pytest.mark.parametrize("job", [job.name for job in JOBS])
def test_a_job_is_a_function_that_takes_what_the_page_says(job):
    function = getattr(jobs, job)
    assert (inspect.isfunction(function), function.__name__) == (True, job)
    parameters = inspect.signature(function).parameters
    for word in SHOWN[job]:
        assert word.rstrip("=") in parameters
        kind = parameters[word.rstrip("=")]
        assert word.endswith("=") == (kind.kind is inspect.Parameter.KEYWORD_ONLY)
    needed = [name for name, each in parameters.items() if each.default is inspect.Parameter.empty]
    assert set(needed) <= {word.rstrip("=") for word in SHOWN[job]}


def test_the_settings_that_the_page_names_are_there():
    (named,) = re.findall(r"`Settings\(([^)]+)\)`", PAGE)
    words = [word.strip().rstrip("=") for word in named.split(",")]
    assert sorted(words) == sorted(inspect.signature(jobs.Settings).parameters)


def test_the_modules_are_where_the_command_looks_for_them():
    for job in JOBS:
        module = __import__(job.module, fromlist=["run"])
        assert inspect.isfunction(module.run)
        assert inspect.isfunction(module.add_arguments)
