"""What every test may ask for, how hard property tests look, and which tests this machine cannot run."""

import os
import shutil

import hypothesis
import pytest

from tests.support import style
from tests.support.fixtures import broker, session_broker, start_broker

__all__ = ["broker", "session_broker", "start_broker"]

# HYPOTHESIS_PROFILE=thorough looks ten times as long. No deadlines: a busy machine is no fault of the code.
hypothesis.settings.register_profile("quick", max_examples=100, deadline=None)
hypothesis.settings.register_profile("thorough", max_examples=1000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

TOOL_OF_MARK = {"java": "java", "node": "node", "go": "go"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test whose toolchain is not there is skipped, and pytest says so."""
    for mark, tool in TOOL_OF_MARK.items():
        if shutil.which(tool) is None:
            for item in items:
                if item.get_closest_marker(mark) is not None:
                    item.add_marker(pytest.mark.skip(reason=f"{tool} is not installed"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The style figures, so that every run shows where they drift."""
    terminalreporter.write_line(style.summary())
