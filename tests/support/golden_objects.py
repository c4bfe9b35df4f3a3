"""Objects of a shared store as each format has them, in tests/data/bucket, one file for a kind and a format."""

from tests.support.style import PROJECT

FOLDER = PROJECT / "tests" / "data" / "bucket"


def read(name):
    return (FOLDER / name).read_bytes()
