r"""Regular expressions whose cost grows with the text alone, whatever the pattern: users write them, and they run on records and names.

    pattern := ["(?i)"] branch ("|" branch)*
    branch  := (piece ["*" | "+" | "?" | "{m}" | "{m,}" | "{m,n}"] ["?"])*
    piece   := character | "." | "[" ["^"] set "]" | "(" pattern ")" | "(?:" pattern ")" | "^" | "$" | "\b" | "\B"
             | "\d" | "\D" | "\w" | "\W" | "\s" | "\S" | "\n" | "\t" | "\r" | "\f" | "\v" | "\xNN" | "\" sign

`$` is the end of the text only. Back references, lookahead and lookbehind are refused: they make the cost unbounded. There are two
dialects. PYTHON has "\uNNNN" and the classes of Unicode. RE2 has classes of ASCII, which sets also know by name ([[:alpha:]]), "\A",
"\z", "\a" and "\Q...\E".

A pattern becomes a list of instructions, and matching keeps the set of those that all ways through the pattern have reached. Sets are
cached with their successor for each character, so that 10,000 names take some 20 milliseconds. `Regex.steps` counts the
instructions visited on cache misses: callers that match many texts bound it.

`re` backtracks: it tries one way through a pattern after the other, and there may be exponentially many. It is quicker where
there is at most one choice, so `compile_pattern` gives it these patterns, on short texts.

RE2 itself (the package google-re2 1.1, measured in 2026) has all of its language and compiles as quickly, but takes three times as
long for 10,000 names through its Python binding, 3 MB of memory, and has no wheels for musl: an installation on Alpine would
need a C++ compiler and Abseil. So it is not a dependency.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping
from typing import NamedTuple

LONGEST_PATTERN = 1_000
MOST_REPETITIONS = 1_000
MOST_INSTRUCTIONS = 2_000
DEEPEST = 50
MOST_REMEMBERED = 5_000
"""Instructions in the sets that one pattern caches, and steps between them: the broker caches many patterns."""
MOST_REMEMBERED_ALONE = 200_000
"""The same for a pattern that a command runs on every record."""
SHORT_TEXT = 2_000
"""Up to this length a pattern with one choice costs `re` some milliseconds at worst."""

Matches = Callable[[str], bool]
Holds = Callable[[str], bool]
"""Whether a piece takes a character; none is the empty text, which marks the end."""


class PatternError(ValueError):
    """The text is not a supported pattern; the message says where and why."""


# -- the languages


class Dialect(NamedTuple):
    """Where the languages of patterns differ."""

    classes: Mapping[str, Holds]
    """What \\d, \\w and \\s take."""
    named: Mapping[str, Holds]
    """The classes that a set knows by name. Without any, a set refuses the signs that Python reserves there."""
    letters: str
    """Letters that mean something after a backslash, beside those of the classes."""


def _ascii(characters: str) -> Holds:
    return frozenset(characters).__contains__


PYTHON = Dialect(
    {"d": str.isdecimal, "w": lambda one: one.isalnum() or one == "_", "s": str.isspace},
    named={},
    letters="bBntrfvxu",
)
_WORD = string.ascii_letters + string.digits + "_"
RE2 = Dialect(
    {"d": _ascii(string.digits), "w": _ascii(_WORD), "s": _ascii(" \t\n\f\r")},
    named={
        "alnum": _ascii(string.ascii_letters + string.digits),
        "alpha": _ascii(string.ascii_letters),
        "digit": _ascii(string.digits),
        "lower": _ascii(string.ascii_lowercase),
        "upper": _ascii(string.ascii_uppercase),
        "punct": _ascii(string.punctuation),
        "space": _ascii(string.whitespace),
        "word": _ascii(_WORD),
        "xdigit": _ascii(string.hexdigits),
    },
    letters="bBntrfvxaAzQ",
)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_ASSERTIONS = {"^": "^", "$": "$", r"\A": "^", r"\z": "$", r"\b": r"\b", r"\B": r"\B"}
_IN_PYTHON = {"^": "^", "$": r"\Z", r"\b": r"\b", r"\B": r"(?:(?!\b))"}
"""The assertions for `re`. On an empty text \\B is true only since Python 3.14; in this form it is true in every version."""
_COUNTS = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


# -- reading a pattern


class Leaf(NamedTuple):
    """Takes a character that `holds`, or passes without one where `asserts` is true."""

    plain: str
    """The same for `re`."""
    holds: Holds | None = None
    asserts: str = ""


class Chain(NamedTuple):
    parts: list[Node]


class Choice(NamedTuple):
    branches: list[Chain]


class Repeat(NamedTuple):
    part: Node
    least: int
    most: int | None


Node = Leaf | Chain | Choice | Repeat
"""No part of a chain is empty, so that each repetition of one adds an instruction, and those are bounded."""


def _is_empty(node: Node) -> bool:
    if isinstance(node, Repeat):
        return node.most == 0 or _is_empty(node.part)
    return isinstance(node, Chain) and not node.parts


class _Reader:
    """A pattern, read from left to right."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        if len(text) > LONGEST_PATTERN:
            raise PatternError(f"a pattern has at most {LONGEST_PATTERN} characters")
        self.text = text
        self.dialect = dialect
        self.position = 0
        self.depth = 0
        self.any_case = self.take("(?i)")

    def pattern(self) -> Node:
        node = self.choice()
        if self.position < len(self.text):
            raise self.error("there is no ( for this )")
        return node

    def take(self, sign: str) -> bool:
        found = self.text.startswith(sign, self.position)
        self.position += len(sign) if found else 0
        return found

    def next_sign(self) -> str:
        """The sign at this position, empty at the end; it is read with that."""
        sign = self.text[self.position : self.position + 1]
        self.position += 1
        return sign

    def error(self, sentence: str) -> PatternError:
        return PatternError(f"at {self.position + 1}: {sentence}")

    def choice(self) -> Node:
        branches = [self.chain()]
        while self.take("|"):
            branches.append(self.chain())
        return branches[0] if len(branches) == 1 else Choice(branches)

    def chain(self) -> Chain:
        parts: list[Node] = []
        while self.position < len(self.text) and self.text[self.position] not in "|)":
            if "Q" in self.dialect.letters and self.take(r"\Q"):
                quoted = self.text[self.position :].partition(r"\E")[0]
                self.position += len(quoted)
                self.take(r"\E")
                parts += [Leaf(re.escape(one), self.literal(one)) for one in quoted]
            else:
                parts.append(self.piece())
            counts = self.counts()
            if counts is not None and parts:
                parts[-1] = Repeat(parts[-1], *counts)
            if parts and _is_empty(parts[-1]):
                parts.pop()
        return Chain(parts)

    def counts(self) -> tuple[int, int | None] | None:
        found = next((counts for sign, counts in _SIGNS.items() if self.take(sign)), None) or self.counts_in_braces()
        if found is not None:
            self.take("?")
            if self.position < len(self.text) and self.text[self.position] in _SIGNS:
                raise self.error("a repetition of a repetition needs ( ) around the first")
        return found

    def counts_in_braces(self) -> tuple[int, int | None] | None:
        """Braces in other forms are characters like any other."""
        match = _COUNTS.match(self.text, self.position)
        if match is None:
            return None
        least = int(match[1])
        most = least if match[2] is None else int(match[3]) if match[3] else None
        if most is not None and most < least:
            raise self.error("the second count is below the first")
        if max(least, most or 0) > MOST_REPETITIONS:
            raise self.error(f"a count is at most {MOST_REPETITIONS}")
        self.position = match.end()
        return least, most

    def piece(self) -> Node:
        if self.text[self.position] == "(":
            return self.group()
        if self.text[self.position] in _SIGNS:
            raise self.error(f"there is nothing before {self.text[self.position]} to repeat")
        began = self.position
        sign = self.next_sign()
        asserts = _ASSERTIONS.get(self.text[began : began + 2] if sign == "\\" else sign)
        if asserts is not None and (sign != "\\" or self.text[self.position] in self.dialect.letters):
            self.position = began + (2 if sign == "\\" else 1)
            return Leaf(_IN_PYTHON[asserts], asserts=asserts)
        if sign == "[":
            holds = self.characters()
        elif sign == ".":
            holds = _is_no_newline
        elif sign == "\\":
            holds = self.escaped()
        else:
            return Leaf(re.escape(sign), self.literal(sign))
        return Leaf(self.text[began : self.position], holds)

    def group(self) -> Node:
        self.position += 1
        if not self.take("?:") and self.take("?"):
            raise self.error("of (?...) only (?:...) is understood, and (?i) at the start")
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"groups nest at most {DEEPEST} deep")
        node = self.choice()
        if not self.take(")"):
            raise self.error("expected )")
        self.depth -= 1
        return node

    def literal(self, wanted: str) -> Holds:
        if not self.any_case:
            return wanted.__eq__
        return self.cased(frozenset({wanted, wanted.lower(), wanted.upper()}).__contains__)

    def cased(self, holds: Holds) -> Holds:
        """The same, in any case if the pattern begins with (?i)."""
        return (lambda one: holds(one) or holds(one.lower()) or holds(one.upper())) if self.any_case else holds

    def escaped(self) -> Holds:
        """What follows a backslash: one character, or a class."""
        sign = self.text[self.position : self.position + 1]
        category = self.dialect.classes.get(sign.lower())
        if category is None:
            return self.literal(self.character())
        self.position += 1
        return category if sign.islower() else lambda one: not category(one)

    def character(self) -> str:
        """The one character that an escape means; the backslash is already read."""
        sign = self.next_sign()
        if sign and sign in "xu" and sign in self.dialect.letters:
            width = 2 if sign == "x" else 4
            digits = self.text[self.position : self.position + width]
            if not re.fullmatch(rf"[0-9a-fA-F]{{{width}}}", digits):
                raise self.error(f"\\{sign} needs {width} hexadecimal digits")
            self.position += width
            return chr(int(digits, 16))
        if sign in _CONTROLS and sign in self.dialect.letters:
            return _CONTROLS[sign]
        if not sign or sign.isalnum() or not sign.isascii():
            raise self.error(f"\\{sign} means nothing here")
        return sign

    def characters(self) -> Holds:
        """A set; the opening bracket is already read."""
        negated = self.take("^")
        members: list[Holds] = []
        while not members or not self.text.startswith("]", self.position):
            if self.position >= len(self.text):
                raise self.error("expected ]")
            members.append(self.member())
        self.position += 1
        return lambda one: negated != any(holds(one) for holds in members)

    def member(self) -> Holds:
        if self.dialect.named and self.take("[:"):
            name = self.text[self.position :].partition(":]")[0]
            if name not in self.dialect.named:
                raise self.error(f"there is no class [:{name}:]")
            self.position += len(name) + 2
            return self.cased(self.dialect.named[name])
        if self.text[self.position + 1 : self.position + 2].lower() in self.dialect.classes and self.take("\\"):
            return self.escaped()
        low = self.one_of_set()
        if self.text[self.position + 1 : self.position + 2] in {"]", ""} or not self.take("-"):
            return self.literal(low)
        high = self.one_of_set()
        if high < low:
            raise self.error(f"{low}-{high} is not a range")
        return self.cased(lambda one: low <= one <= high)

    def one_of_set(self) -> str:
        sign = self.next_sign()
        if sign == "\\":
            return self.character()
        doubled = self.text[self.position - 1 : self.position + 1] in {"--", "&&", "~~", "||"}
        if not self.dialect.named and (sign == "[" or doubled):
            raise self.error(f"{sign} in a set needs a backslash before it")
        return sign


def _is_no_newline(one: str) -> bool:
    return one != "\n"


# -- instructions


class Instruction(NamedTuple):
    """A character that `holds` and on to `one`; or on to `one` and `two`, where `asserts` is true if it is there."""

    holds: Holds | None = None
    one: int = -1
    two: int = -1
    asserts: str = ""


FOUND_AT = 0
"""The instruction that ends a pattern."""


def _compile(node: Node, following: int, program: list[Instruction]) -> int:
    """Put a node in front of the instruction `following`; returns the place of its first instruction."""
    if isinstance(node, Leaf):
        return _put(program, Instruction(node.holds, following, asserts=node.asserts))
    if isinstance(node, Chain):
        for part in reversed(node.parts):
            following = _compile(part, following, program)
        return following
    if isinstance(node, Repeat):
        return _compile_repeat(node, following, program)
    *starts, place = [_compile(branch, following, program) for branch in node.branches]
    for start in reversed(starts):
        place = _put(program, Instruction(None, start, place))
    return place


def _compile_repeat(node: Repeat, following: int, program: list[Instruction]) -> int:
    if node.most is None:
        place = _put(program, Instruction())
        program[place] = Instruction(None, _compile(node.part, place, program), following)
    else:
        place = following
        for _ in range(node.most - node.least):
            place = _put(program, Instruction(None, _compile(node.part, place, program), following))
    for _ in range(node.least):
        place = _compile(node.part, place, program)
    return place


def _put(program: list[Instruction], instruction: Instruction) -> int:
    if len(program) >= MOST_INSTRUCTIONS:
        raise PatternError(f"with its repetitions written out it is too long: more than {MOST_INSTRUCTIONS} steps")
    program.append(instruction)
    return len(program) - 1


# -- matching


class _Reached(NamedTuple):
    """The instructions that a state reaches without taking a character."""

    is_end: bool
    takers: list[tuple[Holds, int]]
    """What may take the next character, each with the instruction behind it."""


class _State:
    """The instructions that all ways through a pattern have reached before the next character."""

    __slots__ = ("after_word", "following", "found", "is_settled", "is_start", "reached", "steps")

    def __init__(self, steps: frozenset[int], *, is_start: bool = False, after_word: bool = False) -> None:
        self.steps = steps
        self.is_start = is_start
        self.after_word = after_word
        self.found = False
        self.is_settled = False
        """Whether the rest of the text changes nothing."""
        self.following: dict[str, _State] = {}
        """By the next character, empty at the end of the text."""
        self.reached: dict[tuple[bool, bool], _Reached] = {}
        """By what decides assertions: whether the text ends here, and whether a word follows."""


def _settled(*, found: bool) -> _State:
    state = _State(frozenset())
    state.found, state.is_settled = found, True
    return state


_FOUND, _MISSED = _settled(found=True), _settled(found=False)


class Regex:
    """A compiled pattern, for whole texts or for a part `anywhere` in them."""

    def __init__(
        self,
        pattern: str,
        dialect: Dialect = RE2,
        *,
        anywhere: bool = False,
        most_remembered: int = MOST_REMEMBERED,
    ) -> None:
        self.pattern = pattern
        self.steps = 0
        self._is_word = dialect.classes["w"]
        self._anywhere = anywhere
        self._program = [Instruction()]
        self._begin = _compile(_Reader(pattern, dialect).pattern(), FOUND_AT, self._program)
        self._takers = {at: (each.holds, each.one) for at, each in enumerate(self._program) if each.holds is not None}
        self._has_borders = any(each.asserts in {r"\b", r"\B"} for each in self._program)
        self._most_remembered = most_remembered
        self._states: dict[tuple[frozenset[int], bool], _State] = {}
        self._start = _State(frozenset({self._begin}), is_start=True)
        self._remembered = 0

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"

    def matches(self, text: str) -> bool:
        state = self._start
        for character in text:
            state = state.following.get(character) or self._follow(state, character)
            if state.is_settled:
                return state.found
        return (state.following.get("") or self._follow(state, "")).found

    def _follow(self, state: _State, character: str) -> _State:
        """The next state for a character that was not met at this one before."""
        if self._remembered > self._most_remembered:
            self._forget()
        reached = self._reach(state, character)
        self.steps += len(reached.takers)
        if reached.is_end and (self._anywhere or not character):
            following = _FOUND
        elif not character:
            following = _MISSED
        else:
            steps = {at for holds, at in reached.takers if holds(character)}
            if self._anywhere:  # a match may begin at each character
                steps.add(self._begin)
            following = self._state(frozenset(steps), character) if steps else _MISSED
        state.following[character] = following
        self._remembered += 1
        return following

    def _state(self, steps: frozenset[int], character: str) -> _State:
        after_word = self._has_borders and self._is_word(character)
        state = self._states.get((steps, after_word))
        if state is None:
            state = self._states[steps, after_word] = _State(steps, after_word=after_word)
            self._remembered += len(steps)
        return state

    def _reach(self, state: _State, character: str) -> _Reached:
        before_word = self._has_borders and self._is_word(character)
        known = state.reached.get((not character, before_word))
        if known is not None:
            return known
        at_border = state.after_word != before_word
        allowed = {"": True, "^": state.is_start, "$": not character, r"\b": at_border, r"\B": not at_border}
        seen = set(state.steps)
        waiting = list(state.steps - self._takers.keys())
        while waiting:
            instruction = self._program[waiting.pop()]
            if instruction.holds is None and allowed[instruction.asserts]:
                fresh = [at for at in (instruction.one, instruction.two) if at >= 0 and at not in seen]
                seen.update(fresh)
                waiting += fresh
        self.steps += len(seen)
        takers = [self._takers[at] for at in seen if at in self._takers]
        reached = state.reached[not character, before_word] = _Reached(FOUND_AT in seen, takers)
        self._remembered += len(takers)
        return reached

    def _forget(self) -> None:
        for state in (self._start, *self._states.values()):
            state.following.clear()
            state.reached.clear()
        self._states.clear()
        self._remembered = 0


# -- handing a pattern to `re`


def compile_pattern(text: str) -> Matches:
    """A function that says whether a text contains the pattern, which is in Python's dialect. Raises PatternError."""
    automaton = Regex(text, PYTHON, anywhere=True, most_remembered=MOST_REMEMBERED_ALONE)
    reader = _Reader(text, PYTHON)
    node = reader.pattern()
    choices = _choices(node) - (len(node.branches) - 1 if isinstance(node, Choice) else 0)
    if choices > 1:
        return automaton.matches
    plain = re.compile(_plain(node), re.IGNORECASE if reader.any_case else 0)
    if not choices:
        return lambda one: plain.search(one) is not None
    return lambda one: plain.search(one) is not None if len(one) <= SHORT_TEXT else automaton.matches(one)


def _choices(node: Node) -> int:
    """How often `re` may have to go back; a choice inside a repetition counts as several, since it is what costs too much."""
    if isinstance(node, Chain):
        return sum(map(_choices, node.parts))
    if isinstance(node, Choice):
        return len(node.branches) - 1 + sum(map(_choices, node.branches))
    if isinstance(node, Repeat):
        inner = _choices(node.part)
        return inner + 2 if inner else int(node.least != node.most)
    return 0


def _plain(node: Node) -> str:
    if isinstance(node, Leaf):
        return node.plain
    if isinstance(node, Chain):
        return "".join(map(_plain, node.parts))
    if isinstance(node, Choice):
        return f"(?:{'|'.join(map(_plain, node.branches))})"
    return f"(?:{_plain(node.part)}){{{node.least},{'' if node.most is None else node.most}}}"
