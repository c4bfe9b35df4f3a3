"""The image, built once for all tests of containers."""

from collections.abc import Iterator

import pytest

from tests.container import images


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    why_not = images.missing()
    if why_not is not None:
        pytest.skip(why_not)
    images.need_base(tmp_path_factory.mktemp("base"))
    images.build(images.IMAGE)
    yield images.IMAGE
    images.run("buildah", "rmi", images.IMAGE)
