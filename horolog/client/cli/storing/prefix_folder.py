"""Opens the prefix that a URL names as a data folder that is only read, for commands that read files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from horolog.broker.bucket.prefix_contents import found_in
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.log.manager import partition_of
from horolog.broker.prefix.prefix_files import PrefixFiles, PrefixOptions
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.broker.prefix.stored_partitions import stored_partitions
from horolog.commands.errors import CommandError, UsageError
from horolog.stores import opening
from horolog.stores.faults import StoreError

if TYPE_CHECKING:
    from horolog.commands.console import Console

AT_ONCE = 8
READ_BYTES = 4 << 20
"""Logs are read from end to end."""


@contextmanager
def opened(url: str, endpoint: str, console: Console, is_wanted: Callable[[str, int], bool]) -> Iterator[PrefixFiles]:
    """The storage; partitions that are not wanted are there without their segments. Raises UsageError and CommandError."""
    try:
        store = opening.open_store(url, endpoint, console.environ)
    except StoreError as error:
        raise UsageError(str(error)) from None
    with PrefixReader(store, AT_ONCE) as reader:
        try:
            found = found_in(store)
            if found is None:
                raise CommandError(f"{url}: no broker has used this URL", "give the value of horolog.store")
            partitions = stored_partitions(reader, found.state, is_wanted)
            yield PrefixFiles(reader, url.rstrip("/"), partitions, PrefixOptions(READ_BYTES))
        except (StoreError, FormatError) as error:
            raise CommandError(str(error), "`horolog store verify` shows all that is missing or damaged") from error


def means(name: str, topic: str, index: int) -> bool:
    """Whether a name is that of a topic, of one of its partitions, or of a file of one."""
    partition = partition_of(name.partition("/")[0])
    return name == topic or partition == (topic, index)


def files_named(storage: PrefixFiles, name: str, is_shown: Callable[[str], bool]) -> list[str]:
    """The paths of the files that a name means; none if there are none."""
    folder, _, file = name.partition("/")
    found = []
    for one in storage.list_dir(storage.root):
        partition = partition_of(one)
        if partition is not None and (one == folder or (partition[0] == name)):
            found += [f"{storage.root}/{one}/{each}" for each in storage.list_dir(f"{storage.root}/{one}")]
    return [path for path in found if is_shown(path) and (not file or path.endswith(f"/{file}"))]
