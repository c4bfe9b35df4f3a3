"""Commands run as a user types them: in this process with captured output, and the golden folders to run them on."""

from pathlib import Path

import pytest

from tests.support import golden
from tests.support.command import run_typed


@pytest.fixture(scope="session")
def golden_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden.unpacked(tmp_path_factory)


@pytest.fixture
def horolog(capsys):
    """Run the command line with these words."""

    def run(*words):
        return run_typed(capsys, *words)

    return run
