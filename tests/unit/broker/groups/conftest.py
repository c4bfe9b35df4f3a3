"""What tests of groups begin with."""

import pytest

from tests.support.group_world import GroupWorld


@pytest.fixture
def world():
    world = GroupWorld()
    world.topic()
    return world
