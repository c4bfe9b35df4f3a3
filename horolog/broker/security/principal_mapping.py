"""`ssl.principal.mapping.rules`: derives a principal's name from the name in a certificate, by the first rule that fits it.

`RULE:PATTERN/REPLACEMENT/[LU]` fits a name that matches the pattern as a whole, `DEFAULT` fits every name and keeps it. Patterns are
Java's, as far as Python has them too; in a replacement `$1` is a group. A name that no rule fits is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

Rule = Callable[[str], str | None]
"""The name that a rule makes of another; None where it does not fit."""

_FORM: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_PARTS: Final = re.compile(rf"\s*({_FORM})\s*(,\s*|$)")
_RULE: Final = re.compile(_FORM)
_GROUP_NAME: Final = re.compile(r"\(\?<(?=[A-Za-z])")
_IN_REPLACEMENT: Final = re.compile(
    r"\\(?P<literal>.)|\$(?P<number>\d+)|\$\{(?P<name>[A-Za-z][A-Za-z0-9]*)\}", re.DOTALL
)


class NoRuleFits(Exception):
    """No rule fits the name in a certificate, so its peer is refused."""


class PrincipalMapping:
    """The rules of a listener. Raises ValueError for one that cannot be read."""

    def __init__(self, text: str) -> None:
        parts = [found[1] for found in _PARTS.finditer(text.strip())]
        self._rules: list[Rule] = [rule for part in parts if (rule := _rule_of(part)) is not None]

    def __repr__(self) -> str:
        return f"<PrincipalMapping of {len(self._rules)} rules>"

    def name_of(self, distinguished_name: str) -> str:
        """Raises NoRuleFits."""
        for rule in self._rules:
            name = rule(distinguished_name)
            if name is not None:
                return name
        raise NoRuleFits(f"no rule of ssl.principal.mapping.rules fits {distinguished_name[:200]!r}")


def _rule_of(text: str) -> Rule | None:
    """One rule; an empty text is none."""
    found = _RULE.match(text)
    assert found is not None  # an empty text fits
    if found.end() != len(text):
        raise ValueError(f"{text[:100]!r} is not a rule: expected RULE:PATTERN/REPLACEMENT/[LU] or DEFAULT")
    if found[1] is not None:
        return _as_it_is
    return None if found[2] is None else _written(found[2], found[3], found[4])


def _as_it_is(name: str) -> str:
    return name


def _written(pattern: str, replacement: str, case: str) -> Rule:
    try:
        compiled = re.compile(_GROUP_NAME.sub("(?P<", pattern))
    except re.error as error:
        raise ValueError(f"{pattern[:100]!r} is not a pattern: {error}") from error
    template = _template(replacement, compiled)

    def rule(name: str) -> str | None:
        if compiled.fullmatch(name) is None:
            return None
        result = compiled.sub(template, name)
        return result.lower() if case == "L" else result.upper() if case == "U" else result

    return rule


def _template(replacement: str, pattern: re.Pattern[str]) -> Callable[[re.Match[str]], str]:
    """What takes a match's place, as Java's replaceAll reads it."""
    for name in (found["name"] for found in _IN_REPLACEMENT.finditer(replacement)):
        if name is not None and name not in pattern.groupindex:
            raise ValueError(f"{replacement[:100]!r} names a group {name} that the pattern has not")

    def fill(match: re.Match[str]) -> str:
        def one(found: re.Match[str]) -> str:
            if found["literal"] is not None:
                return found["literal"]
            if found["name"] is not None:
                return match[found["name"]] or ""
            return _group(match, found["number"])

        return _IN_REPLACEMENT.sub(one, replacement)

    return fill


def _group(match: re.Match[str], digits: str) -> str:
    """The group that the most digits name; digits that name none stand for themselves, with their $."""
    groups = match.re.groups
    taken = next((size for size in range(len(digits), 0, -1) if int(digits[:size]) <= groups), 0)
    return (match[int(digits[:taken])] or "") + digits[taken:] if taken else f"${digits}"
