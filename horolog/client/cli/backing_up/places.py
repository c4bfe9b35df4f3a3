"""Opens the place of a backup, and makes sentences of its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from horolog.broker.backup.rounds import BackupTaken, RoundFailed
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.log.files import CheckpointError
from horolog.broker.log.storage import DataFolderError, FolderInUse, StorageFault
from horolog.broker.transfer.whole_folder import FolderTaken
from horolog.commands.errors import CommandError, NotFoundError
from horolog.stores import opening
from horolog.stores.faults import StoreError

if TYPE_CHECKING:
    from horolog.commands.console import Console
    from horolog.stores.bucket_store import BucketStore

ADVICE = "run the same command again: it continues where it stopped"


def opened(url: str, endpoint: str, console: Console) -> BucketStore:
    """A path of a folder is a URL, too."""
    try:
        return opening.open_store(f"file://{url}" if url.startswith("/") else url, endpoint, console.environ)
    except StoreError as error:
        raise CommandError(str(error)) from None


def no_moment(url: str, at_ms: int | None = None) -> NotFoundError:
    """The error where there is no moment at all, or none up to that time."""
    if at_ms is None:
        return NotFoundError(f"{url} has no backup")
    return NotFoundError(f"{url} has no moment from that time or before", "horolog backup list shows all moments")


@contextmanager
def speaking(url: str) -> Iterator[None]:
    """Raise the errors of a backup as CommandError."""
    try:
        yield
    except BackupTaken as error:
        raise CommandError(f"{url}: {error}", "name another place") from error
    except RoundFailed as error:
        raise CommandError(f"the folders changed each time while they were read: {error}", ADVICE) from error
    except FolderTaken as error:
        raise CommandError(str(error), "choose an empty folder") from error
    except FolderInUse as error:
        raise CommandError(f"a broker runs there: {error}", "choose an empty folder") from error
    except FormatError as error:
        raise CommandError(f"{url}: {error}") from error
    except StoreError as error:
        raise CommandError(str(error), ADVICE) from error
    except (DataFolderError, StorageFault, SettingsError, CheckpointError) as error:
        raise CommandError(str(error)) from error
