"""The machine of most tests of the log manager; files with several data folders have one of their own."""

import pytest

from tests.support.log_machine import Machine


@pytest.fixture
def machine():
    return Machine()
