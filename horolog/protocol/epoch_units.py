"""Guesses the unit of a time since 1970 by its magnitude; pure.

A number of milliseconds between 1973 and 5138 has 12 to 14 digits. Seconds, microseconds and nanoseconds of the same years have
three fewer, three more and six more: the ranges do not overlap. Numbers below 10**8 do not occur as times in practice.
"""

from fractions import Fraction

UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

_BELOW = ((10**11, "s"), (10**14, "ms"), (10**17, "us"))
_SMALLEST = 10**8
_PER_MS = {"s": Fraction(1, 1000), "ms": Fraction(1), "us": Fraction(1000), "ns": Fraction(1_000_000)}


def unit_by_magnitude(number: int) -> str:
    return next((unit for limit, unit in _BELOW if abs(number) < limit), "ns")


def to_ms(number: float, unit: str) -> int:
    """A number of that unit in whole milliseconds, rounded down; of one with a fraction, to the nearest."""
    exact = Fraction(number) / _PER_MS[unit]
    return int(exact // 1) if isinstance(number, int) else round(exact)


def misread_as_ms(number: int) -> str | None:
    """The unit of a number that is given for milliseconds and looks like another; None where milliseconds are plausible."""
    unit = unit_by_magnitude(number)
    return None if unit == "ms" or abs(number) < _SMALLEST else unit
