"""Ids of topics, folders and members as Kafka writes them: 16 bytes in URL-safe base64 without padding."""

from base64 import b64decode, urlsafe_b64encode

from horolog.protocol.primitives import Buffer

UUID_BYTES = 16


def show_uuid(value: Buffer) -> str:
    """22 characters, as Kafka's tools print a topic id."""
    return urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def parse_uuid(text: str) -> bytes:
    """The 16 bytes; raises ValueError."""
    try:
        value = b64decode(f"{text}==", altchars="-_", validate=True)
    except ValueError as error:
        raise ValueError(f"{text[:60]!r} is not an id") from error
    if len(value) != UUID_BYTES:
        raise ValueError(f"{text[:60]!r} is not an id of {UUID_BYTES} bytes")
    return value
