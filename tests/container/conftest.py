"""The image, built once for all tests of containers."""

import pytest

from tests.container import images


@pytest.fixture(scope="session")
def image() -> str:
    why_not = images.missing()
    if why_not is not None:
        pytest.skip(why_not)
    return images.need_image()
