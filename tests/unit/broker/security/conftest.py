"""Certificates for the tests of this folder."""

import pytest

from tests.support.certificates import Certificates


@pytest.fixture
def certificates(tmp_path):
    return Certificates(tmp_path)
