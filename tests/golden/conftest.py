"""The golden archive unpacked once, and every case and stage of it as parameters."""

from pathlib import Path

import pytest

from tests.support import golden


@pytest.fixture(scope="session")
def golden_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden.unpacked(tmp_path_factory)


@pytest.fixture
def case(request: pytest.FixtureRequest, golden_root: Path) -> golden.Case:
    """The case named by an indirect parameter."""
    return golden.case_of(request.param, golden_root)
