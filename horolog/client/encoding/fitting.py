"""What all encoders share: how a value that does not fit its schema is refused, and what texts mean."""

from base64 import b64decode
from binascii import Error as Base64Error
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EncodingError(ValueError):
    """The value does not fit its schema; the message says where and why."""


def no_fit(value: Any, wanted: str) -> EncodingError:
    shown = repr(value) if not isinstance(value, Decimal) else str(value)
    return EncodingError(f"{shown[:60]} is not {wanted}")


def within(where: str, error: EncodingError) -> EncodingError:
    """The error with the path to the value."""
    text = str(error)
    rest = text.removeprefix("field ")
    return EncodingError(f"field {where}.{rest}" if rest != text else f"field {where}: {text}")


def as_bytes(value: Any) -> bytes:
    """The bytes that a text, or an object with hexadecimal digits or base64, stands for."""
    if isinstance(value, bytes):  # of a writer itself, in a well-known type
        return value
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    try:
        if isinstance(value, dict) and value.keys() == {"hex"}:
            return bytes.fromhex(value["hex"])
        if isinstance(value, dict) and value.keys() == {"base64"}:
            return b64decode(value["base64"], validate=True)
    except (Base64Error, TypeError, ValueError) as error:
        raise no_fit(value, "hexadecimal digits or base64") from error
    raise no_fit(value, 'bytes: text, or an object such as {"hex": "00ff"}')


def instant_ns(text: str, *, is_local: bool = False) -> int:
    """Nanoseconds since 1970 of a time in ISO 8601, in UTC unless it has an offset. Raises ValueError."""
    whole, _, rest = text.removesuffix("Z").partition(".")
    digits = rest if rest.isdigit() else ""
    found = datetime.fromisoformat(whole if digits else text)
    if found.tzinfo is None or is_local:
        found = found.replace(tzinfo=UTC)
    micros = (found - EPOCH) // EPOCH.resolution
    return micros * 1000 + (int(f"{digits[:9]:0<9}") if digits else 0)
