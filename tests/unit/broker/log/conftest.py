"""What the log's tests share: the golden archive, unpacked once."""

from pathlib import Path

import pytest

from tests.support import golden


@pytest.fixture(scope="session")
def golden_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden.unpacked(tmp_path_factory)
