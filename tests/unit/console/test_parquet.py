"""JSON lines of records become Parquet with their bytes as they were."""

import io
import json

import pytest

from horolog.console import parquet
from horolog.console.parquet import converted, is_installed, member, row, write

LINES = [
    {
        "topic": "t",
        "partition": 0,
        "offset": number,
        "timestamp": 1_700_000_000_000 + number,
        "key": None,
        "value_base64": "/wA=",
        "headers": [{"key": "h", "value": "x"}],
    }
    for number in range(3)
]
NEEDED = pytest.mark.skipif(not is_installed(), reason="pyarrow is not installed")


def encoded():
    return [json.dumps(line).encode() + b"\n" for line in LINES]


def test_rows():
    made = row(LINES[1])
    assert (made["key"], made["value"], made["offset"]) == (None, b"\xff\x00", 1)
    assert made["headers"] == [{"key": "h", "value": b"x"}]
    assert member({"key": "k"}, "key") == b"k"


@NEEDED
def test_it_is_written_in_groups(monkeypatch):
    from pyarrow import parquet as files

    monkeypatch.setattr(parquet, "ROWS_OF_GROUP", 2)
    out = io.BytesIO()
    write(encoded(), out)
    table = files.read_table(io.BytesIO(out.getvalue()))
    assert table.column("offset").to_pylist() == [0, 1, 2]
    assert table.column("value").to_pylist() == [b"\xff\x00"] * 3


@NEEDED
async def test_a_process_of_its_own_does_it():
    async def lines():
        for line in encoded():
            yield line

    assert (await converted(lines()))[:4] == b"PAR1"


async def test_a_process_that_fails_is_an_error(monkeypatch):
    monkeypatch.setattr(parquet.sys, "executable", "/bin/false")

    async def lines():
        for line in encoded()[:0]:
            yield line

    with pytest.raises(OSError, match="failed"):
        await converted(lines())
