"""Source text to functions: the sheet on which codecs are written, with tracebacks that show the written line."""

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct as Layout
from typing import Any

_layouts: dict[str, Layout] = {}


def layout(codes: str) -> Layout:
    """The one precompiled big-endian struct for these codes."""
    found = _layouts.get(codes)
    if found is None:
        found = _layouts[codes] = Layout(">" + codes)
    return found


def define(source: str, name: str, filename: str, constants: dict[str, Any]) -> Any:
    """Run `source` with `constants` as its globals and return what it calls `name`."""
    import linecache  # not needed before the first message, and not cheap

    # The registered lines make tracebacks and debuggers show generated code like any other.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec", dont_inherit=True), constants)  # noqa: S102 (its only input are our own declarations)
    return constants[name]


class Sheet:
    """Lines of one generated module, and the constants that they name."""

    __slots__ = ("_indent", "_lines", "constants")

    def __init__(self, constants: dict[str, Any]) -> None:
        self.constants = constants
        self._lines: list[str] = []
        self._indent = ""

    def line(self, text: str) -> None:
        self._lines.append(self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines written inside are the body of `head`."""
        self.line(head)
        outer, self._indent = self._indent, self._indent + "    "
        yield
        self._indent = outer

    def constant(self, name: str, value: Any) -> str:
        """Make `value` known to the code; a name that another value has taken gets a number."""
        unique, number = name, 1
        while self.constants.setdefault(unique, value) != value:
            number += 1
            unique = f"{name}_{number}"
        return unique

    def text(self) -> str:
        return "\n".join((*self._lines, ""))
