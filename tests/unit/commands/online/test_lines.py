"""Lines come whole, whatever pieces a pipe hands over."""

import asyncio
import io
import os

import pytest

from horolog.commands.online import lines
from horolog.commands.online.lines import LineTooLong, lines_of


async def collect(path, stdin):
    return [line async for some in lines_of(path, stdin) for line in some]


def test_lines_of_a_file(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"a\r\n\nb\rc\n" + b"x" * lines.CHUNK_BYTES + b"\nend")
    expected = [b"a", b"", b"b\rc", b"x" * lines.CHUNK_BYTES, b"end"]
    assert asyncio.run(collect(str(path), io.StringIO())) == expected


def test_an_empty_file_has_no_lines(tmp_path):
    path = tmp_path / "empty"
    path.touch()
    assert asyncio.run(collect(str(path), io.StringIO())) == []


def test_standard_input_without_a_descriptor():
    assert asyncio.run(collect("-", io.StringIO("a\nä"))) == [b"a", "ä".encode()]


def test_lines_of_a_pipe_come_when_they_are_written():
    async def talk():
        receiving, sending = os.pipe()
        with os.fdopen(receiving) as stdin:
            stream = lines_of("-", stdin)
            os.write(sending, b"one\ntw")
            assert await anext(stream) == [b"one"]
            os.write(sending, b"o\n")
            assert await anext(stream) == [b"two"]
            os.close(sending)
            assert [some async for some in stream] == []

    asyncio.run(talk())


def test_a_long_line_is_not_put_together_anew_for_each_piece(tmp_path, monkeypatch):
    """With pieces of a few bytes, work that grows with the square of the length would take minutes."""
    monkeypatch.setattr(lines, "CHUNK_BYTES", 64)
    path = tmp_path / "long"
    path.write_bytes(b"short\n" + b"x" * 4_000_000 + b"\r\nend\n\n")

    async def go():
        async with asyncio.timeout(40):
            return await collect(str(path), io.StringIO())

    assert asyncio.run(go()) == [b"short", b"x" * 4_000_000, b"end", b""]


def test_a_line_without_end_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1000)
    path = tmp_path / "long"
    path.write_bytes(b"x" * 2000)
    with pytest.raises(LineTooLong):
        asyncio.run(collect(str(path), io.StringIO()))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        asyncio.run(collect(str(tmp_path / "none"), io.StringIO()))


def test_what_cannot_be_read_is_raised():
    receiving, sending = os.pipe()
    with os.fdopen(receiving), os.fdopen(sending, "w") as not_readable, pytest.raises(OSError, match="Bad file"):
        asyncio.run(collect("-", not_readable))


def test_a_closed_stream_has_no_lines():
    stream = io.StringIO("a\n")
    stream.close()

    async def go():
        async with asyncio.timeout(30):
            return await collect("-", stream)

    assert asyncio.run(go()) == []
