"""Settles the unit of a number given as a record's time: milliseconds, unless it looks like another; then the user is asked.

Nothing is guessed for times that are written: a record a thousand times too old is deleted as soon as it arrives, and one a
thousand times too young stays forever. Reading commands guess by the same magnitudes, and say so (`client.values.times`).
"""

import re
from collections.abc import Callable

from horolog.commands.console import Console, is_terminal
from horolog.commands.online.lines import STDIN, lines_of
from horolog.commands.online.record_text import RecordTextError
from horolog.protocol.epoch_units import UNIT_NAMES, misread_as_ms, to_ms

_EPOCH = re.compile(r"\s*@(-?[0-9]{1,30})\s*")


class UnitInDoubt(RecordTextError):
    """A number that looks like a unit other than milliseconds; `unit` is that unit."""

    def __init__(self, number: int, unit: str, show_time: Callable[[int], str]) -> None:
        self.unit = unit
        self.question = (
            f"the timestamp {number} looks like {UNIT_NAMES[unit]} ({show_time(to_ms(number, unit))});"
            f" as milliseconds it is {show_time(number)}"
        )
        super().__init__(f"{self.question}; --timestamp-unit {unit} or --timestamp-unit ms says which it is")


ANSWERS = {"s": "s", "ms": "ms", "us": "us", "ns": "ns", "m": "ms", "u": "us", "n": "ns"}


async def ask(doubt: UnitInDoubt, console: Console) -> str | None:
    """The unit that the user at the terminal gives; None without a terminal, or an answer."""
    if not is_terminal(console.stdin):
        return None
    console.err.write(f"{doubt.question}. Which unit is it? [{doubt.unit}/ms/N] ")
    console.err.flush()
    async for answers in lines_of(STDIN, console.stdin):
        return ANSWERS.get(answers[0].decode(errors="replace").strip().lower())
    return None


class Timestamps:
    """Reads times of records; `unit`, if given, is the unit of every number."""

    def __init__(self, unit: str | None, parse_text: Callable[[str], int], show_time: Callable[[int], str]) -> None:
        self._unit = unit
        self._parse_text = parse_text
        self._show_time = show_time
        self._settled: dict[str, str] = {}

    def settle(self, looks_like: str, unit: str) -> None:
        """From now on, numbers that look like one unit are in the other."""
        self._settled[looks_like] = unit

    def text(self, text: str) -> int:
        """A time in the command line's grammar; `@` with a number without a unit counts as a number."""
        number = _EPOCH.fullmatch(text)
        return self._parse_text(text) if number is None else self.number(int(number[1]))

    def number(self, number: float) -> int:
        """Raises UnitInDoubt."""
        if self._unit is not None:
            return to_ms(number, self._unit)
        if not isinstance(number, int):
            raise RecordTextError(
                f"the timestamp {number} is not a whole number of milliseconds; --timestamp-unit s reads it as seconds"
            )
        unit = misread_as_ms(number)
        if unit is None:
            return number
        if unit not in self._settled:
            raise UnitInDoubt(number, unit, self._show_time)
        return to_ms(number, self._settled[unit])
