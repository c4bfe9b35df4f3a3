"""Turns JSON lines of records into Parquet, in a separate process: pyarrow takes more memory than the rest of the console."""

import asyncio
import sys
from base64 import b64decode
from collections.abc import AsyncIterator, Iterable
from importlib.util import find_spec
from json import loads
from typing import Any, BinaryIO

ROWS_OF_GROUP = 10_000
LARGEST_FILE = 256 << 20


def is_installed() -> bool:
    return find_spec("pyarrow") is not None


async def converted(lines: AsyncIterator[bytes]) -> bytes:
    """The Parquet file. Raises OSError if the process fails."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    taking = asyncio.ensure_future(process.stdout.read(LARGEST_FILE))
    try:
        async for line in lines:
            process.stdin.write(line)
            await process.stdin.drain()
        process.stdin.close()
        made = bytearray()
        while part := await taking:
            made += part
            taking = asyncio.ensure_future(process.stdout.read(LARGEST_FILE))
        if await process.wait():
            raise OSError("the process that writes Parquet failed")
        return bytes(made)
    finally:
        taking.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()


def write(lines: Iterable[bytes], out: BinaryIO) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
    schema = pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("ms", tz="UTC")),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("headers", pa.list_(pair)),
        ]
    )
    with parquet.ParquetWriter(out, schema) as writer:
        rows: list[dict[str, Any]] = []
        for line in lines:
            rows.append(row(loads(line)))
            if len(rows) >= ROWS_OF_GROUP:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                rows = []
        if rows:
            writer.write_table(pa.Table.from_pylist(rows, schema))


def row(record: dict[str, Any]) -> dict[str, Any]:
    headers = [
        {"key": (member(one, "key") or b"").decode(errors="replace"), "value": member(one, "value")}
        for one in record["headers"]
    ]
    return {
        **{name: record[name] for name in ("topic", "partition", "offset", "timestamp")},
        "key": member(record, "key"),
        "value": member(record, "value"),
        "headers": headers,
    }


def member(record: dict[str, Any], name: str) -> bytes | None:
    if f"{name}_base64" in record:
        return b64decode(record[f"{name}_base64"])
    value = record[name]
    return None if value is None else value.encode()


if __name__ == "__main__":
    write(sys.stdin.buffer, sys.stdout.buffer)
