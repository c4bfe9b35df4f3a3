"""Reads from a certificate what the broker has to know: whose it is, in the form that Java gives, and when it expires.

The TLS library has verified the certificate before.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple

from horolog.base import der

EXPIRY_WARNING_MS: Final = 30 * 86_400_000
"""How long before its end a certificate is warned about, where nothing else is set."""

KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""The attributes that RFC 2253 names; Java writes the numbers of all others."""

SUBJECT_ALTERNATIVES: Final = "2.5.29.17"
EXTENSIONS: Final = 0xA3
TEXT_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})
ESCAPED: Final = frozenset(',=+<>#;"\\')
BLANK: Final = " \r"


class Certificate(NamedTuple):
    """`subject` as Java's X500Principal.getName() has it."""

    subject: str
    expires_s: float


def read(encoded: bytes) -> Certificate:
    """The certificate of some DER. Raises DerError."""
    body = der.first(der.first(encoded, der.SEQUENCE).content, der.SEQUENCE)
    parts = [one for one in der.elements(body.content) if one.tag < 0xA0]  # a version may stand before
    if len(parts) < 6 or any(parts[number].tag != der.SEQUENCE for number in (3, 4)):
        raise der.DerError("this is not a certificate")  # number, algorithm, issuer, validity, subject, key
    _, _, _, validity, subject, *_ = parts
    times = list(der.elements(validity.content))
    if len(times) != 2:
        raise der.DerError("a validity has two times")
    return Certificate(_name(subject.content), _seconds(times[1]))


def alternatives(encoded: bytes) -> frozenset[bytes]:
    """The alternative names of a certificate, as they are encoded. Raises DerError."""
    body = der.first(der.first(encoded, der.SEQUENCE).content, der.SEQUENCE)
    for extensions in (one for one in der.elements(body.content) if one.tag == EXTENSIONS):
        for extension in der.elements(der.first(extensions.content, der.SEQUENCE).content):
            parts = list(der.elements(extension.content))  # a critical flag may stand in the middle
            if len(parts) < 2 or parts[0].tag != der.OBJECT_IDENTIFIER:
                raise der.DerError("an extension has a kind and a value")
            if der.dotted(parts[0].content) == SUBJECT_ALTERNATIVES:
                return frozenset(
                    one.encoded for one in der.elements(der.first(parts[-1].content, der.SEQUENCE).content)
                )
    return frozenset()


def is_same_name(one: str, other: str) -> bool:
    """Whether two subjects are the same, as Java compares them: ignoring case and repeated blanks."""
    return one.casefold().split() == other.casefold().split()


def expiry_warning(whose: str, expires_s: float, now_s: float, within_ms: int) -> str | None:
    """A line about a certificate that is about to expire, or has."""
    left_s = expires_s - now_s
    if left_s * 1000 >= within_ms:
        return None
    when = datetime.fromtimestamp(expires_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"the certificate of {whose} {'expires' if left_s > 0 else 'has expired'}: {when}"


def _seconds(time: der.Element) -> float:
    form = {der.UTC_TIME: "%y%m%d%H%M%SZ", der.GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}.get(time.tag)
    if form is None:
        raise der.DerError("an invalid time")
    text = time.content.decode("latin-1")
    try:
        found = datetime.strptime(text, form).replace(tzinfo=UTC)
    except ValueError as error:
        raise der.DerError(f"{text[:20]!r} is not a time") from error
    if time.tag == der.UTC_TIME and found.year >= 2050:  # Python turns the century at 69, X.509 at 50
        found = found.replace(year=found.year - 100)
    return found.timestamp()


def _name(content: bytes) -> str:
    """RFC 2253: the last part first."""
    relative = ["+".join(map(_attribute, der.elements(one.content))) for one in der.elements(content)]
    return ",".join(reversed(relative))


def _attribute(attribute: der.Element) -> str:
    parts = list(der.elements(attribute.content))
    if len(parts) != 2 or parts[0].tag != der.OBJECT_IDENTIFIER:
        raise der.DerError("a part of a name has a type and a value")
    kind, value = parts
    number = der.dotted(kind.content)
    keyword = KEYWORDS.get(number)
    if keyword is None or value.tag not in TEXT_TAGS:
        return f"{keyword or number}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    middle = text.strip(BLANK)
    lead = len(text) - len(text.lstrip(BLANK))
    before, after = (text[:lead], text[lead + len(middle) :]) if middle else (text, "")
    return _each_escaped(before) + "".join(map(_character, middle)) + _each_escaped(after)


def _character(character: str) -> str:
    if character == "\0":
        return "\\00"
    return f"\\{character}" if character in ESCAPED else character


def _each_escaped(blanks: str) -> str:
    return "".join(f"\\{one}" for one in blanks)
