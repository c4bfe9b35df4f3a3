"""Objects of a shared store as format 1 has them, in tests/data/bucket: fence-1, manifest-1, mark-1, wal-1, merged-1, cluster-1, entry-1, snapshot-1."""

from tests.support.style import PROJECT

FOLDER = PROJECT / "tests" / "data" / "bucket"


def read(name):
    return (FOLDER / name).read_bytes()
