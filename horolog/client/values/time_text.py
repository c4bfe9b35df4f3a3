"""Reads a text about times from left to right; pure. Used by the grammars of times, zones and durations."""

import re

LONGEST_TEXT = 100

_LETTERS = re.compile(r"[A-Za-zµ]+")
SPACE = re.compile(r"\s*")


class TimeTextError(ValueError):
    """The text is not a time or duration: the message says where it went wrong and what would be valid."""


class TimeText:
    """The text, how far it was read, and the examples that an error shows."""

    def __init__(self, text: str, examples: str) -> None:
        if len(text) > LONGEST_TEXT:
            raise TimeTextError(f"{text[:20]!r}... is too long; examples: {examples}")
        self.text = text
        self._read = text  # with blanks in place of parts taken out of the middle
        self.examples = examples
        self.position = len(text) - len(text.lstrip())
        self.end = len(text.rstrip())
        first, last = self.text[self.position : self.position + 1], self.text[self.end - 1 : self.end]
        if first == "[" and last == "]":  # as in the logs of web servers
            self.position += 1
            self.end -= 1

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The next part if it matches; consumes it."""
        found = self.sees(pattern)
        if found is not None:
            self.position = found.end()
        return found

    def sees(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The next part if it matches, without consuming it."""
        return pattern.match(self._read, self.position, self.end)

    def take_out(self, pattern: re.Pattern[str]) -> str | None:
        """The group of the first match anywhere; replaces it with blanks."""
        found = pattern.search(self._read, self.position, self.end)
        if found is None:
            return None
        start, end = found.span(1)
        self._read = self._read[:start] + " " * (end - start) + self._read[end:]
        self.end = self.position + len(self._read[self.position : self.end].rstrip())
        return found[1]

    def word(self) -> str:
        """The next letters, in lower case, without consuming them."""
        found = self.sees(_LETTERS)
        return found[0].lower() if found is not None else ""

    def take_word(self, *words: str) -> str | None:
        word = self.word()
        if word not in words:
            return None
        self.position += len(word)
        return word

    @property
    def ended(self) -> bool:
        return self.position >= self.end

    def error(self, expected: str) -> TimeTextError:
        """The part read so far, where it stopped, and what would be valid."""
        read, rest = self.text[: self.position], self.text[self.position : self.end]
        found = ", but the text ends" if not rest else "" if rest == self.text else f", found {rest.strip()!r}"
        where = f"after {read.strip()!r}, " if read.strip() else ""
        return TimeTextError(f"{self.text!r}: {where}expected {expected}{found}; examples: {self.examples}")
