"""Reads lines of files and of standard input, several at a time, without ever blocking the event loop."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

STDIN = "-"
CHUNK_BYTES = 256 << 10
CHUNKS_AHEAD = 4
MAX_LINE_BYTES = 64 << 20


class LineTooLong(ValueError):
    def __init__(self) -> None:
        super().__init__(f"the line is longer than {MAX_LINE_BYTES} bytes; is it text?")


async def lines_of(path: str, stdin: IO[Any]) -> AsyncIterator[list[bytes]]:
    """The lines without their ends, as many at once as have arrived; the last may be unterminated."""
    with ExitStack() as stack:
        read = _stdin_reader(stdin) if path == STDIN else _file_reader(stack.enter_context(_open(path)))
        # A line whose end has not arrived yet. It is grown in place, or a long one would cost its length squared.
        begun = bytearray()
        async for chunk in _chunks(read):
            first, *others = chunk.split(b"\n")
            begun += first
            if len(begun) > MAX_LINE_BYTES:
                raise LineTooLong
            if others:
                *whole, rest = (bytes(begun), *others)
                yield [line.removesuffix(b"\r") for line in whole]
                begun = bytearray(rest)
        if begun:
            yield [bytes(begun).removesuffix(b"\r")]


def _open(path: str) -> IO[bytes]:
    return Path(path).open("rb")


def _file_reader(file: IO[bytes]) -> Callable[[], bytes]:
    return lambda: file.read(CHUNK_BYTES)


def _stdin_reader(stdin: IO[Any]) -> Callable[[], bytes]:
    """Bypass the buffers if there is a descriptor: a pipe's data comes at once, and no lock is held at exit."""
    try:
        descriptor = stdin.fileno()
    except (OSError, ValueError):
        return lambda: _encoded(stdin.read(CHUNK_BYTES))
    return lambda: os.read(descriptor, CHUNK_BYTES)


def _encoded(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data


async def _chunks(read: Callable[[], bytes]) -> AsyncIterator[bytes]:
    """Read in a thread: a daemon, because nothing ends a read of a terminal or pipe, not even Ctrl-C."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | OSError] = asyncio.Queue()
    room = threading.Semaphore(CHUNKS_AHEAD)

    def run() -> None:
        while room.acquire():
            result: bytes | OSError
            try:
                result = read()
            except OSError as error:
                result = error
            except ValueError:  # closed: there is nothing more to read
                result = b""
            try:
                loop.call_soon_threadsafe(queue.put_nowait, result)
            except RuntimeError:  # the loop has ended meanwhile
                return
            if not result or isinstance(result, OSError):
                return

    threading.Thread(target=run, daemon=True, name="reads input").start()
    while True:
        chunk = await queue.get()
        room.release()
        if isinstance(chunk, OSError):
            raise chunk
        if not chunk:
            return
        yield chunk
