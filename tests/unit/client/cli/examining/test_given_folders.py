"""A path that no `log.dirs` would name is refused with advice, before anything is read from it."""

import pytest

from horolog.broker.log.storage import MemoryStorage
from horolog.client.cli.examining.given_folders import check_given
from horolog.commands.errors import NotFoundError


@pytest.fixture
def storage():
    made = MemoryStorage()
    for folder in ("/data", "/data/t-0", "/data/empty", "/data/new"):
        made.make_dir(folder)
    made.create("/data/t-0/00000000000000000000.log")
    made.create("/data/server.log")
    made.create("/data/new/server.log")
    return made


def test_data_folders_and_empty_ones_are_taken(storage):
    check_given(storage, ["/data", "/data/empty", "/data/new"])


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("/data/gone", "/data/gone is not a folder; give the folder that log.dirs names"),
        ("/data/server.log", "/data/server.log is not a folder; give the folder that log.dirs names"),
        ("/data/t-0", "/data/t-0 is the folder of one partition; name the data folder above it"),
    ],
)
def test_what_is_none_is_refused(storage, folder, said):
    with pytest.raises(NotFoundError) as refused:
        check_given(storage, ["/data", folder])
    assert str(refused.value) == said


def test_the_advice_is_the_commands_own(storage):
    with pytest.raises(NotFoundError, match=r"and --topic$"):
        check_given(storage, ["/data/t-0"], "name the data folder above it, and --topic")
