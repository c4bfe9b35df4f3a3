"""Reads the text of `sasl.jaas.config`, in the form that Kafka reads: one login module with its options.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="..." password="..." user_alice="..." ;

Values are words, or quoted as in Java. Options hold passwords, so no error message shows any of the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL: Final = "01234567"
_DIGITS: Final = frozenset("0123456789.-")
_ALSO_IN_WORDS: Final = frozenset("-_$")


class JaasError(ValueError):
    """The text is malformed; the message shows nothing of it."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """What a JAAS text says."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def parse(text: str) -> LoginModule:
    """The one login module of a text; raises JaasError."""
    reader = _Reader(text)
    module = reader.word("the name of a login module")
    flag = reader.word("a control flag, such as required, behind the login module")
    if flag.lower() not in FLAGS:
        raise JaasError(f"the control flag after the login module must be one of {', '.join(FLAGS)}")
    options: dict[str, str] = {}
    while not reader.takes(";"):
        key = reader.word("an option or a semicolon")
        if not reader.takes("="):
            raise JaasError(f"option {len(options) + 1} of the login module has no value")
        options[key] = reader.word(f"the value of option {len(options) + 1}")
    if not reader.is_at_end():
        raise JaasError("one login module is allowed, and nothing behind its semicolon")
    return LoginModule(module, options)


class _Reader:
    """Takes words and signs, as Java's StreamTokenizer splits them with Kafka's rules."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def is_at_end(self) -> bool:
        self._skip()
        return self._at >= len(self._text)

    def takes(self, sign: str) -> bool:
        self._skip()
        found = self._text.startswith(sign, self._at)
        self._at += found
        return found

    def word(self, wanted: str) -> str:
        self._skip()
        first = self._text[self._at : self._at + 1]
        if first in {'"', "'"} and first:
            return self._quoted(first)
        begin = self._at
        while self._at < len(self._text) and _is_of_word(self._text[self._at]):
            self._at += 1
        if begin == self._at or first in _DIGITS:  # what begins so is a number for Java, and no word
            raise JaasError(f"expected {wanted} at character {begin + 1}; put values other than plain words in quotes")
        return self._text[begin : self._at]

    def _skip(self) -> None:
        """Skip white space and Java's comments; a single slash begins one, too."""
        text = self._text
        while self._at < len(text):
            if text[self._at] <= " ":
                self._at += 1
            elif text.startswith("/*", self._at):
                end = text.find("*/", self._at + 2)
                self._at = len(text) if end < 0 else end + 2
            elif text[self._at] == "/":
                while self._at < len(text) and text[self._at] not in "\r\n":
                    self._at += 1
            else:
                return

    def _quoted(self, quote: str) -> str:
        begin = self._at
        self._at += 1
        found: list[str] = []
        while True:
            one = self._text[self._at : self._at + 1]
            if one in {"", "\n", "\r"}:
                raise JaasError(f"the quote at character {begin + 1} has no end")
            self._at += 1
            if one == quote:
                return "".join(found)
            found.append(self._escaped() if one == "\\" else one)

    def _escaped(self) -> str:
        one = self._text[self._at : self._at + 1]
        if not one:
            return ""
        if one in _OCTAL:
            longest = 3 if one <= "3" else 2
            digits = one
            while len(digits) < longest and self._text[self._at + len(digits) : self._at + len(digits) + 1] in tuple(
                _OCTAL
            ):
                digits += self._text[self._at + len(digits)]
            self._at += len(digits)
            return chr(int(digits, 8))
        self._at += 1
        return _ESCAPES.get(one, one)


def _is_of_word(one: str) -> bool:
    return (one.isascii() and one.isalnum()) or one in _DIGITS or one in _ALSO_IN_WORDS or ord(one) >= 160
