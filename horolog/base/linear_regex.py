r"""Regular expressions in time linear in the text: the part of RE2's language that topic names need, run as a set of states.

    .  [abc] [^a-z] [[:alpha:]]  \d \D \w \W \s \S  \. and other escaped signs  ^ $
    ab  a|b  (a)  (?:a)  a* a+ a?  a{2} a{2,} a{2,5}  and each of these with a ? behind it, which changes nothing here

A pattern becomes a list of instructions; matching keeps the set of instructions that are reached, so no pattern makes it slow. Sets are
cached with their successor for each character, so that 10,000 names take some 20 milliseconds. `steps` counts the instructions visited
on cache misses: callers that match many texts bound it. Other syntax, above all back references, is refused.

RE2 itself (the package google-re2 1.1, measured in 2026) has all of its language and compiles as quickly, but takes three times as
long for the names through its Python binding, 3 MB of memory, and has no wheels for musl: an installation on Alpine would
need a C++ compiler and Abseil. So it is not a dependency.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_PATTERN_LENGTH = 1_000
MAX_REPEAT = 1_000
MAX_INSTRUCTIONS = 2_000
MAX_DEPTH = 50
MAX_REMEMBERED = 5_000
"""Instructions in the sets that one pattern caches, and steps between them."""

Ranges = tuple[tuple[int, int], ...]

_DIGITS: Ranges = ((48, 57),)
_WORDS: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACES: Ranges = ((9, 10), (12, 13), (32, 32))
_CLASSES: dict[str, tuple[Ranges, bool]] = {
    "d": (_DIGITS, False),
    "D": (_DIGITS, True),
    "w": (_WORDS, False),
    "W": (_WORDS, True),
    "s": (_SPACES, False),
    "S": (_SPACES, True),
}
_NAMED: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "digit": _DIGITS,
    "lower": ((97, 122),),
    "upper": ((65, 90),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "word": _WORDS,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "a": 7}
LAST_CHARACTER = 0x10FFFF
ANY: Ranges = ((0, 9), (11, LAST_CHARACTER))


class PatternError(ValueError):
    """A pattern that cannot be parsed; the text says why."""


class Instruction(NamedTuple):
    """One of: a character in `ranges` and on to `one`; on to `one` and `two`; `at_start`, `at_end`: on to `one` only there."""

    ranges: Ranges | None
    one: int = -1
    two: int = -1
    at_start: bool = False
    at_end: bool = False


MATCH = Instruction(None)


class RegexState:
    """A set of instructions that a text has reached, and its successors for the characters met so far."""

    __slots__ = ("accepts", "following", "states")

    def __init__(self, states: frozenset[int], *, accepts: bool) -> None:
        self.states = states
        self.accepts = accepts
        """Whether a text that ends here matches."""
        self.following: dict[str, RegexState] = {}


class Regex:
    """A compiled pattern."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MAX_PATTERN_LENGTH:
            raise PatternError(f"it is longer than {MAX_PATTERN_LENGTH} characters")
        self.pattern = pattern
        self.steps = 0
        self._program = [MATCH]
        self._start = _compile(_Parser(pattern).parse(), 0, self._program)
        self._forget()

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        place = self._first
        for character in text:
            place = place.following.get(character) or self._follow(place, character)
            if not place.states:
                return False
        return place.accepts

    def _forget(self) -> None:
        self._places: dict[frozenset[int], RegexState] = {}
        self._remembered = 0
        self._first = self._place(frozenset({self._start}), at_start=True)

    def _follow(self, place: RegexState, character: str) -> RegexState:
        """The next place for a character that was not met at this one before."""
        code = ord(character)
        self.steps += len(place.states)
        steps = frozenset(
            self._program[state].one
            for state in place.states
            if (ranges := self._program[state].ranges) is not None and any(low <= code <= high for low, high in ranges)
        )
        if self._remembered > MAX_REMEMBERED:
            self._forget()
        following = self._places.get(steps)
        if following is None:
            following = self._places[steps] = self._place(steps, at_start=False)
        place.following[character] = following
        self._remembered += 1
        return following

    def _place(self, steps: frozenset[int], *, at_start: bool) -> RegexState:
        states = self._reach(steps, at_start=at_start, at_end=False)
        self._remembered += len(states)
        return RegexState(states, accepts=0 in self._reach(steps, at_start=at_start, at_end=True))

    def _reach(self, steps: frozenset[int], *, at_start: bool, at_end: bool) -> frozenset[int]:
        """All instructions that are reached without reading a character."""
        reached: set[int] = set()
        waiting = list(steps)
        while waiting:
            state = waiting.pop()
            if state < 0 or state in reached:
                continue
            reached.add(state)
            step = self._program[state]
            self.steps += 1
            if step.ranges is None and (at_start or not step.at_start) and (at_end or not step.at_end):
                waiting += (step.one, step.two)
        return frozenset(reached)


# A parsed pattern: ("ranges", ...), ("start",), ("end",), ("cat", parts), ("or", parts), ("repeat", part, low, high or None)
Node = tuple[object, ...]


class _Parser:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0

    def parse(self) -> Node:
        node = self._alternatives()
        if self._at < len(self._text):
            raise PatternError(f"unexpected ) at {self._at}")
        return node

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        character = self._peek()
        if not character:
            raise PatternError("it ends too early")
        self._at += 1
        return character

    def _alternatives(self) -> Node:
        parts = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else ("or", parts)

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._peek() not in {"", "|", ")"}:
            parts.append(self._repeated(self._atom()))
        return ("cat", parts)

    def _atom(self) -> Node:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return ("ranges", self._set())
        if character == "\\":
            return self._escape()
        if character == ".":
            return ("ranges", ANY)
        if character in "^$":
            return ("start",) if character == "^" else ("end",)
        if character in "*+?":
            raise PatternError(f"nothing to repeat at {self._at - 1}")
        return ("ranges", ((ord(character), ord(character)),))

    def _group(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise PatternError(f"it is nested deeper than {MAX_DEPTH}")
        if self._peek() == "?":
            if not self._text.startswith("?:", self._at):
                raise PatternError(f"unsupported group at {self._at}")
            self._at += 2
        node = self._alternatives()
        if self._peek() != ")":
            raise PatternError("missing )")
        self._at += 1
        self._depth -= 1
        return node

    def _repeated(self, node: Node) -> Node:
        counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        repeated = False
        while self._peek() in {"*", "+", "?", "{"}:
            bounds = self._bounds() if self._peek() == "{" else counts[self._take()]
            if bounds is None:
                return node
            if repeated:
                raise PatternError(f"a repetition of a repetition at {self._at - 1}")
            low, high = bounds
            node = ("repeat", node, low, high)
            repeated = True
            if self._peek() == "?":
                self._at += 1
        return node

    def _bounds(self) -> tuple[int, int | None] | None:
        """The bounds of {2}, {2,} or {2,5}; any other brace is a plain character, which the next atom reads."""
        end = self._text.find("}", self._at)
        low, comma, high = self._text[self._at + 1 : max(end, 0)].partition(",")
        if end < 0 or not low.isdecimal() or (high and not high.isdecimal()) or not low.isascii():
            return None
        self._at = end + 1
        first = int(low)
        last = first if not comma else int(high) if high else None
        if first > MAX_REPEAT or (last is not None and not first <= last <= MAX_REPEAT):
            raise PatternError(f"a repetition of {low}{comma}{high} times")
        return first, last

    def _escape(self) -> Node:
        character = self._take()
        if character in _CLASSES:
            ranges, inverted = _CLASSES[character]
            return ("ranges", _invert(ranges) if inverted else ranges)
        if character in {"A", "z"}:
            return ("start",) if character == "A" else ("end",)
        if character == "Q":
            return self._quoted()
        code = self._escaped_code(character)
        return ("ranges", ((code, code),))

    def _quoted(self) -> Node:
        """Everything up to the end mark stands for itself."""
        end = self._text.find("\\E", self._at)
        stop = len(self._text) if end < 0 else end
        literal = self._text[self._at : stop]
        self._at = stop if end < 0 else end + 2
        return ("cat", [("ranges", ((ord(one), ord(one)),)) for one in literal])

    def _escaped_code(self, character: str) -> int:
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character.isalnum():
            raise PatternError(f"unsupported escape \\{character}")
        return ord(character)

    def _set(self) -> Ranges:
        inverted = self._peek() == "^"
        self._at += inverted
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self._peek() != "]":
            ranges += self._set_item()
            first = False
        self._at += 1
        return _invert(tuple(ranges)) if inverted else tuple(ranges)

    def _set_item(self) -> Ranges:
        if self._text.startswith("[:", self._at):
            end = self._text.find(":]", self._at)
            name = self._text[self._at + 2 : max(end, 0)]
            if name not in _NAMED:
                raise PatternError(f"unknown class [:{name}:]")
            self._at = end + 2
            return _NAMED[name]
        character = self._take()
        if character == "\\":
            character = self._take()
            if character in _CLASSES:
                ranges, inverted = _CLASSES[character]
                return _invert(ranges) if inverted else ranges
            low = self._escaped_code(character)
        else:
            low = ord(character)
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in {"]", ""}:
            return ((low, low),)
        self._at += 1
        character = self._take()
        high = self._escaped_code(self._take()) if character == "\\" else ord(character)
        if high < low:
            raise PatternError(f"a range that runs backwards at {self._at}")
        return ((low, high),)


def _invert(ranges: Ranges) -> Ranges:
    inverted = []
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            inverted.append((start, low - 1))
        start = max(start, high + 1)
    if start <= LAST_CHARACTER:
        inverted.append((start, LAST_CHARACTER))
    return tuple(inverted)


def _compile(node: Node, following: int, program: list[Instruction]) -> int:
    """Put a node in front of the instruction `following`; returns the place of its first instruction."""
    kind = node[0]
    if kind == "ranges":
        return _put(program, Instruction(node[1], following))  # type: ignore[arg-type]
    if kind in {"start", "end"}:
        return _put(program, Instruction(None, following, at_start=kind == "start", at_end=kind == "end"))
    if kind == "cat":
        for part in reversed(node[1]):  # type: ignore[call-overload]
            following = _compile(part, following, program)
        return following
    if kind == "or":
        starts = [_compile(part, following, program) for part in node[1]]  # type: ignore[attr-defined]
        place = starts[-1]
        for start in reversed(starts[:-1]):
            place = _put(program, Instruction(None, start, place))
        return place
    _, part, low, high = node
    return _compile_repeat(part, low, high, following, program)  # type: ignore[arg-type]


def _compile_repeat(part: Node, low: int, high: int | None, following: int, program: list[Instruction]) -> int:
    if high is None:
        loop = _put(program, Instruction(None))
        program[loop] = Instruction(None, _compile(part, loop, program), following)
        place = loop
    else:
        place = following
        for _ in range(high - low):
            place = _put(program, Instruction(None, _compile(part, place, program), following))
    for _ in range(low):
        place = _compile(part, place, program)
    return place


def _put(program: list[Instruction], instruction: Instruction) -> int:
    if len(program) >= MAX_INSTRUCTIONS:
        raise PatternError(f"it takes more than {MAX_INSTRUCTIONS} steps")
    program.append(instruction)
    return len(program) - 1
