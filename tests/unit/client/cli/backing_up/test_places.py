"""Errors of a backup are sentences with advice."""

import pytest

pytest.importorskip("obstore")

from horolog.broker.backup.rounds import BackupTaken, RoundFailed
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.log.storage import DataFolderError, FolderInUse
from horolog.broker.transfer.whole_folder import FolderTaken
from horolog.client.cli.backing_up.places import no_moment, opened, speaking
from horolog.commands.console import Console
from horolog.commands.errors import CommandError
from horolog.stores.faults import StoreError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BackupTaken("it is taken"), "s3://b: it is taken; name another place"),
        (RoundFailed("gone"), "each time while they were read: gone; run the same command again"),
        (FolderTaken("not empty"), "not empty; choose an empty folder"),
        (FolderInUse("locked"), "a broker runs there: locked"),
        (FormatError("damaged"), "s3://b: damaged"),
        (StoreError("no answer"), "no answer; run the same command again"),
        (DataFolderError("no folder"), "no folder"),
    ],
)
def test_an_error_is_a_sentence(error, said):
    with pytest.raises(CommandError, match=said), speaking("s3://b"):
        raise error


def test_a_path_is_a_place(tmp_path):
    assert opened(f"{tmp_path}/x", "", Console()).place.url == f"file://{tmp_path}/x"
    with pytest.raises(CommandError, match="expected"):
        opened("nowhere", "", Console())


def test_that_there_is_no_moment_is_said_of_the_time_that_was_asked_for():
    assert str(no_moment("s3://b")) == "s3://b has no backup"
    assert "s3://b has no moment from that time or before" in str(no_moment("s3://b", 5))
