"""The image, built once for all tests of containers."""

import pytest

from tests.container import images


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    why_not = images.missing()
    if why_not is not None:
        pytest.skip(why_not)
    return images.need_image(tmp_path_factory.mktemp("base"))
