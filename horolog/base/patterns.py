r"""Regular expressions whose cost grows with the text alone, whatever the pattern: users write them, and they run on each record.

    pattern := ["(?i)"] branch ("|" branch)*
    branch  := (piece ["*" | "+" | "?" | "{m}" | "{m,}" | "{m,n}"] ["?"])*
    piece   := character | "." | "[" ["^"] set "]" | "(" pattern ")" | "(?:" pattern ")" | "^" | "$" | "\b" | "\B"
             | "\d" | "\D" | "\w" | "\W" | "\s" | "\S" | "\n" | "\t" | "\r" | "\f" | "\v" | "\xNN" | "\uNNNN" | "\" sign

A pattern is searched for anywhere in the text. The syntax means what it means to Python's `re`, except that `$` is the
end of the text only. Back references, lookahead and lookbehind are refused: they make the cost unbounded.

`re` backtracks: it tries one way through a pattern after the other, and there may be exponentially many. So it gets only patterns with
at most one choice in them, on short texts. All others run on an automaton that follows all ways at once, one step a
character: its states are made on first use, and kept.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

LONGEST_PATTERN = 1000
MOST_NODES = 2000
MOST_STATES = 500
"""The automaton drops its states when it has this many, and builds them again."""
DEEPEST = 50
SHORT_TEXT = 2000
"""Up to this length a pattern with one free repetition costs `re` some milliseconds at worst."""

Matches = Callable[[str], bool]
Holds = Callable[[str], bool]

_CATEGORIES: dict[str, Holds] = {
    "d": str.isdecimal,
    "w": lambda one: one.isalnum() or one == "_",
    "s": str.isspace,
}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_COUNTS = re.compile(r"\{([0-9]{1,4})(,([0-9]{0,4}))?\}")


class PatternError(ValueError):
    """The text is not a supported pattern; the message says where and why."""


@dataclass(slots=True, eq=False)
class _Node:
    """A step of the automaton: takes a character that `holds`, or passes without one if `asserts` allows it."""

    holds: Holds | None = None
    asserts: str = ""
    after: "list[_Node]" = field(default_factory=list)
    is_end: bool = False


_Part = tuple[_Node, _Node]
"""The entry and exit nodes of a part of the pattern."""


def compile_pattern(text: str) -> Matches:
    """A function that says whether a text contains the pattern. Raises PatternError."""
    source = _Source(text)
    first, last = source.pattern()
    last.after.append(_Node(is_end=True))
    automaton = _Automaton(first)
    plain = re.compile("".join(source.plain), re.IGNORECASE if source.any_case else 0)
    if source.free_repetitions == 0:
        return lambda one: plain.search(one) is not None
    if source.free_repetitions > 1:
        return automaton.matches
    return lambda one: plain.search(one) is not None if len(one) <= SHORT_TEXT else automaton.matches(one)


# -- reading a pattern


class _Source:
    """A pattern, read from left to right into nodes and into equivalent text for `re`."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST_PATTERN:
            raise PatternError(f"a pattern has at most {LONGEST_PATTERN} characters")
        self.text = text
        self.position = 0
        self.nodes = 0
        self.depth = 0
        self.free_repetitions = 0
        self.plain: list[str] = []
        self.any_case = self.take("(?i)")

    def take(self, sign: str) -> bool:
        if self.text.startswith(sign, self.position):
            self.position += len(sign)
            return True
        return False

    def error(self, sentence: str) -> PatternError:
        return PatternError(f"{self.text!r}: at {self.position + 1}: {sentence}")

    def node(self, holds: Holds | None = None, asserts: str = "") -> _Node:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise PatternError(f"{self.text!r}: with its repetitions written out the pattern is too long")
        return _Node(holds, asserts)

    def pattern(self) -> _Part:
        part = self.alternatives()
        if self.position < len(self.text):
            raise self.error("there is no ( for this )")
        return part

    def alternatives(self) -> _Part:
        first, last = self.node(), self.node()
        while True:
            entry, leave = self.branch()
            first.after.append(entry)
            leave.after.append(last)
            if not self.take("|"):
                return first, last
            self.plain.append("|")
            self.free_repetitions += self.depth > 0  # ways of one group are tried with those of the next

    def branch(self) -> _Part:
        first = last = self.node()
        while self.position < len(self.text) and self.text[self.position] not in "|)":
            entry, leave = self.repeated()
            last.after.append(entry)
            last = leave
        return first, last

    def repeated(self) -> _Part:
        began, wrote, repetitions = self.position, len(self.plain), self.free_repetitions
        part = self.piece()
        counts = self.counts()
        if counts is None:
            return part
        least, most = counts
        written = self.plain[wrote:]
        is_free = least != most
        nested = self.free_repetitions > repetitions
        # A free repetition inside another repetition is what costs `re` too much.
        self.free_repetitions += (1 + nested) if is_free else (nested * 2)
        if any("|" in one for one in written) and (is_free or (most or 0) > 1):
            self.free_repetitions += 2
        self.plain.append(f"{{{least},{'' if most is None else most}}}")
        ended, counted = self.position, self.free_repetitions
        found = self.written_out(part, began, least, most)
        self.position, self.free_repetitions = ended, counted
        if self.take("?"):
            self.plain.append("?")
        if self.position < len(self.text) and self.text[self.position] in "*+?":
            raise self.error("a repetition of a repetition needs ( ) around the first")
        return found

    def counts(self) -> tuple[int, int | None] | None:
        for sign, counts in {"*": (0, None), "+": (1, None), "?": (0, 1)}.items():
            if self.take(sign):
                return counts
        match = _COUNTS.match(self.text, self.position)
        if match is None:
            return None
        least = int(match[1])
        most = least if match[2] is None else int(match[3]) if match[3] else None
        if most is not None and most < least:
            raise self.error("the second count is below the first")
        self.position = match.end()
        return least, most

    def again(self, began: int) -> _Part:
        """A copy of the piece that begins there, as nodes of its own."""
        kept = len(self.plain)
        self.position = began
        part = self.piece()
        del self.plain[kept:]
        return part

    def written_out(self, part: _Part, began: int, least: int, most: int | None) -> _Part:
        first, last = self.node(), self.node()
        end = first
        for number in range(max(least, 1 if most is None else most)):
            entry, leave = part if number == 0 else self.again(began)
            end.after.append(entry)
            if number >= least:
                end.after.append(last)
            if most is None and number >= least - 1:
                leave.after.append(entry)
            end = leave
        end.after.append(last)
        return first, last

    def piece(self) -> _Part:
        sign = self.text[self.position]
        if sign == "(":
            return self.group()
        if sign in "*+?":
            raise self.error(f"there is nothing before {sign} to repeat")
        began = self.position
        self.position += 1
        if sign in "^$":
            self.plain.append("^" if sign == "^" else r"\Z")
            return self.leaf(self.node(asserts=sign))
        if sign == "\\" and self.text[self.position : self.position + 1] in ("b", "B"):
            self.position += 1
            # On an empty text \B is true only since Python 3.14; in this form it is true in every version.
            self.plain.append(r"\b" if self.text[began : self.position] == r"\b" else r"(?:(?!\b))")
            return self.leaf(self.node(asserts=self.text[began : self.position]))
        if sign == "[":
            holds = self.characters()
        elif sign == ".":
            holds = _is_no_newline
        elif sign == "\\":
            holds = self.escaped()
        else:
            holds = self.literal(sign)
        self.plain.append(self.text[began : self.position] if sign in "[.\\" else re.escape(sign))
        return self.leaf(self.node(holds))

    @staticmethod
    def leaf(node: _Node) -> _Part:
        return node, node

    def group(self) -> _Part:
        self.position += 1
        if self.take("?:"):
            pass
        elif self.take("?"):
            raise self.error("of (?...) only (?:...) is understood, and (?i) at the start")
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"groups nest at most {DEEPEST} deep")
        self.plain.append("(?:")
        part = self.alternatives()
        if not self.take(")"):
            raise self.error(") is expected")
        self.plain.append(")")
        self.depth -= 1
        return part

    def literal(self, wanted: str) -> Holds:
        if not self.any_case:
            return lambda one: one == wanted
        forms = {wanted, wanted.lower(), wanted.upper()}
        return lambda one: one in forms

    def escaped(self) -> Holds:
        """What follows a backslash: one character, or a class."""
        sign = self.text[self.position : self.position + 1]
        category = _CATEGORIES.get(sign.lower())
        if category is not None:
            self.position += 1
            return category if sign.islower() else lambda one: not category(one)
        return self.literal(self.character())

    def character(self) -> str:
        """The one character that an escape means; the backslash is already read."""
        sign = self.text[self.position : self.position + 1]
        self.position += 1
        if sign in _CONTROLS:
            return _CONTROLS[sign]
        if sign in {"x", "u"}:
            width = 2 if sign == "x" else 4
            digits = self.text[self.position : self.position + width]
            if not re.fullmatch(rf"[0-9a-fA-F]{{{width}}}", digits):
                raise self.error(f"\\{sign} needs {width} hexadecimal digits")
            self.position += width
            return chr(int(digits, 16))
        if not sign or sign.isalnum() or not sign.isascii():
            raise self.error(f"\\{sign} means nothing here")
        return sign

    def characters(self) -> Holds:
        """A set; the opening bracket is already read."""
        negated = self.take("^")
        members: list[Holds] = []
        while not members or not self.text.startswith("]", self.position):
            if self.position >= len(self.text):
                raise self.error("] is expected")
            members.append(self.member())
        self.position += 1
        if negated:
            return lambda one: not any(holds(one) for holds in members)
        return lambda one: any(holds(one) for holds in members)

    def member(self) -> Holds:
        if self.text[self.position] == "\\" and self.text[self.position + 1 : self.position + 2].lower() in _CATEGORIES:
            self.position += 1
            return self.escaped()
        low = self.one_of_set()
        if not self.text.startswith("-", self.position) or self.text[self.position + 1 : self.position + 2] in (
            "]",
            "",
        ):
            return self.literal(low)
        self.position += 1
        high = self.one_of_set()
        if high < low:
            raise self.error(f"{low}-{high} is no range")
        if not self.any_case:
            return lambda one: low <= one <= high
        return lambda one: any(low <= form <= high for form in (one, one.lower(), one.upper()))

    def one_of_set(self) -> str:
        sign = self.text[self.position]
        self.position += 1
        if sign == "\\":
            return self.character()
        if sign == "[" or self.text[self.position - 1 : self.position + 1] in ("--", "&&", "~~", "||"):
            raise self.error(f"{sign} in a set needs a backslash before it")
        return sign


def _is_no_newline(one: str) -> bool:
    return one != "\n"


# -- walking


@dataclass(slots=True, eq=False)
class _State:
    """The nodes that all ways through the pattern have reached before the next character."""

    nodes: frozenset[_Node]
    is_start: bool
    after_word: bool
    to: "dict[str, _State | None]" = field(default_factory=dict)
    """By the next character, empty at the end of the text; None: the pattern was found."""


class _Automaton:
    """All ways through a pattern at once."""

    def __init__(self, first: _Node) -> None:
        self.first = first
        self.states: dict[tuple[frozenset[_Node], bool, bool], _State] = {}
        self.start = self._state(frozenset({first}), is_start=True, after_word=False)

    def matches(self, text: str) -> bool:
        state = self.start
        for one in text:
            try:
                found = state.to[one]
            except KeyError:
                found = self._step(state, one)
            if found is None:
                return True
            state = found
        return self._step(state, "") is None

    def _state(self, nodes: frozenset[_Node], *, is_start: bool, after_word: bool) -> _State:
        key = (nodes, is_start, after_word)
        known = self.states.get(key)
        if known is None:
            if len(self.states) >= MOST_STATES:
                self._forget()
            known = self.states[key] = _State(nodes, is_start, after_word)
        return known

    def _forget(self) -> None:
        for state in self.states.values():
            state.to.clear()
        self.states = {(self.start.nodes, True, False): self.start}

    def _step(self, state: _State, one: str) -> _State | None:
        """The state after this character; None if a way had reached its end before it."""
        reached: set[_Node] = {self.first}  # a match may begin at each character
        found: _State | None
        for node in self._passed(state, one):
            if node.is_end:
                found = None
                break
            if node.holds is not None and one and node.holds(one):
                reached.update(node.after)
        else:
            found = self._state(frozenset(reached), is_start=False, after_word=_CATEGORIES["w"](one))
        state.to[one] = found
        return found

    @staticmethod
    def _passed(state: _State, one: str) -> set[_Node]:
        """The nodes reachable without taking a character."""
        at_border = state.after_word != (one != "" and _CATEGORIES["w"](one))
        allowed = {"": True, "^": state.is_start, "$": one == "", r"\b": at_border, r"\B": not at_border}
        seen = set(state.nodes)
        waiting = list(seen)
        while waiting:
            node = waiting.pop()
            if node.holds is None and not node.is_end and allowed[node.asserts]:
                fresh = [each for each in node.after if each not in seen]
                seen.update(fresh)
                waiting.extend(fresh)
        return seen
