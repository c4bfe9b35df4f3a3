"""Codecs for (message, version) pairs, generated on first use and cached."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from horolog.protocol.compile_decode import write_decoder
from horolog.protocol.compile_encode import write_element_encoder, write_encoder
from horolog.protocol.errors import DecodeError, ProtocolError
from horolog.protocol.primitives import Buffer
from horolog.protocol.wire import Message

M = TypeVar("M", bound=Message)
Decoder = Callable[..., tuple[M, int]]
"""Takes a buffer and a start, and how many elements of lists and how many tags the message may have at most."""

Encoder = Callable[[M, list[Buffer]], None]

_decoders: dict[tuple[type[Message], int, bool], Callable[..., Any]] = {}
_stepping_decoders: dict[tuple[type[Message], int, bool], Callable[..., Any]] = {}
_element_encoders: dict[tuple[type[Message], int, bool, tuple[str, ...]], Callable[..., Any]] = {}
_encoders: dict[tuple[type[Message], int, bool], Callable[..., Any]] = {}


def decoder(cls: type[M], version: int) -> Decoder[M]:
    """A function from (buffer, start) to (message, end) that raises DecodeError and nothing else; see `Decoder`."""
    found = _decoders.get((cls, version, False))
    if found is None:
        _check_version(cls, version)
        found = _decoders[cls, version, False] = write_decoder(cls, version)
    return found


def decoder_in_steps(
    cls: type[Message], version: int, *, flat: bool
) -> Callable[[Buffer, int, int, int], Generator[None, None, tuple[Any, int]]]:
    """Like `decoder` or `flat_decoder`, but a generator that yields now and then; it returns the message and its end."""
    found = _stepping_decoders.get((cls, version, flat))
    if found is None:
        _check_version(cls, version)
        found = _stepping_decoders[cls, version, flat] = write_decoder(cls, version, flat=flat, in_steps=True)
    return found


def encoder(cls: type[M], version: int) -> Encoder[M]:
    """A function that appends a message's bytes to a list of parts, large record buffers uncopied; raises EncodeError."""
    found = _encoders.get((cls, version, False))
    if found is None:
        _check_version(cls, version)
        found = _encoders[cls, version, False] = write_encoder(cls, version)
    return found


def flat_decoder(cls: type[Message], version: int) -> Callable[..., tuple[Any, int]]:
    """Like `decoder`, but each struct is a tuple of its fields, in the order of their declaration: for the most frequent messages."""
    found = _decoders.get((cls, version, True))
    if found is None:
        _check_version(cls, version)
        found = _decoders[cls, version, True] = write_decoder(cls, version, flat=True)
    return found


def flat_encoder(cls: type[Message], version: int) -> Callable[[Any, list[Buffer]], None]:
    """Like `encoder`, for a message whose structs are tuples of their fields."""
    found = _encoders.get((cls, version, True))
    if found is None:
        _check_version(cls, version)
        found = _encoders[cls, version, True] = write_encoder(cls, version, flat=True)
    return found


def decoder_of(cls: type[Message], version: int, *, flat: bool) -> Callable[..., tuple[Any, int]]:
    """`flat_decoder` or `decoder`."""
    return flat_decoder(cls, version) if flat else decoder(cls, version)


def encoder_of(cls: type[Message], version: int, *, flat: bool) -> Callable[[Any, list[Buffer]], None]:
    """`flat_encoder` or `encoder`."""
    return flat_encoder(cls, version) if flat else encoder(cls, version)


def element_encoder(
    cls: type[Message], version: int, path: tuple[str, ...], *, flat: bool
) -> Callable[[Sequence[Any]], bytes]:
    """A function that encodes elements of the array that a path of arrays leads to; `Encoded` holds what it returns.

    With an empty path it encodes whole messages. Either way arrays may be `Encoded` already.
    """
    found = _element_encoders.get((cls, version, flat, path))
    if found is None:
        _check_version(cls, version)
        found = _element_encoders[cls, version, flat, path] = write_element_encoder(cls, version, path, flat=flat)
    return found


def decode(cls: type[M], version: int, buffer: Buffer, start: int = 0, *, to_the_end: bool = False) -> M:
    """One message from `start`; with `to_the_end`, bytes after it are refused."""
    message, end = decoder(cls, version)(buffer, start)
    if to_the_end and end != len(buffer):
        raise DecodeError(f"{cls.__name__} v{version}: {len(buffer) - end} bytes follow the message")
    return message


def encode(message: Message, version: int) -> bytes:
    parts: list[Buffer] = []
    encoder(type(message), version)(message, parts)
    return b"".join(parts)


def _check_version(cls: type[Message], version: int) -> None:
    if version not in cls.VERSIONS:
        raise ProtocolError(
            f"{cls.__name__} has no version {version}, only {cls.VERSIONS.first} to {cls.VERSIONS.last}"
        )
