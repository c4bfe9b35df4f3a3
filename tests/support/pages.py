"""Splits documentation pages into blocks of code, and runs each as a reader would.

A block is fenced, or indented by four blanks after an empty line or a heading. Its language is the fence's; an indented one that begins
with `$ ` is a console, any other has no language and is not run. Languages that are run:

- `console`: lines that begin with `$ ` are shell commands (a here-document belongs to its command), the others are their output;
- `sh`: commands, none of which may fail;
- `python`: a program, or tests for pytest if it defines any; a block of `text` right after it is its output.

In output `...` stands for anything: inside a line for at least one character, on a line of its own for any lines.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.support import forking
from tests.support.style import PROJECT

PAGES = [
    PROJECT / "README.md",
    PROJECT / "CONTRIBUTING.md",
    PROJECT / "SECURITY.md",
    *sorted((PROJECT / "docs").glob("*.md")),
]
RUN = frozenset({"console", "sh", "python"})
ADDRESSES = ("127.0.0.1:9092", "localhost:9092")
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n(?:[ \t]*\n(?= {4}))*)+")
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
_COMMAND_SECONDS = 60
_SLOW_STEP = re.compile(r"^Executing <.* took [0-9.]+ seconds\n", re.MULTILINE)
"""What asyncio says of a long step in its debug mode, which unittest sets: on a busy machine any step may be long."""


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str
    prints: str | None = None
    """The program's expected output, from the block after it."""

    @property
    def first(self) -> str:
        return self.text.partition("\n")[0]


class Step(NamedTuple):
    """A command and the lines that follow it."""

    command: str
    expected: list[str]


def blocks_of(path: Path) -> list[Block]:
    return blocks_in(path.read_text("utf-8"), path.relative_to(PROJECT).as_posix())


def blocks_in(text: str, page: str) -> list[Block]:
    """All blocks, in order; a block of `text` after a program becomes part of it."""
    fenced = list(_FENCED.finditer(text))
    bare = _FENCED.sub(lambda found: re.sub(r"[^\n]", "`", found[0]), text)
    bare = _HEADING.sub(lambda found: "\n" * len(found[0]), bare)  # a block may come right below a heading
    spots = [(found.start(), found.end(), found[1], found[2]) for found in fenced]
    for found in _INDENTED.finditer(bare):
        inside = re.sub("^    ", "", found[0], flags=re.MULTILINE).rstrip() + "\n"
        spots.append((found.start(), found.end(), "console" if inside.startswith("$ ") else "", inside))
    spots.sort()
    printed = {
        here[0]: after[3]
        for here, after in pairwise(spots)
        if here[2] == "python" and after[2] == "text" and not text[here[1] : after[0]].strip()
    }
    ends = {after[0] for here, after in pairwise(spots) if here[0] in printed}
    return [
        Block(page, text.count("\n", 0, start) + 1, language, inside, printed.get(start))
        for start, _, language, inside in spots
        if start not in ends
    ]


def steps(text: str) -> list[Step]:
    """The commands of a console, each with the lines that follow it."""
    found: list[Step] = []
    end_of_input = None
    for line in text.splitlines():
        if end_of_input is not None:
            found[-1] = found[-1]._replace(command=f"{found[-1].command}\n{line}")
            end_of_input = None if line == end_of_input else end_of_input
        elif line.startswith("$ "):
            found.append(Step(line[2:], []))
            here = re.search(r"<<'(\w+)'", line)
            end_of_input = here[1] if here else None
        else:
            found[-1].expected.append(line.rstrip())
    return found


def commands(text: str) -> Iterator[str]:
    """The commands of a block of `sh`, one a line unless a backslash continues it, without whole-line comments."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def prints(expected: list[str], printed: str) -> bool:
    """Whether the output matches what the page shows."""
    lines = [line.rstrip() for line in printed.rstrip("\n").splitlines()]
    pattern = "".join(r"(?:.*\n)*" if line.strip() == "..." else f"{_pattern_of(line)}\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


def _pattern_of(line: str) -> str:
    return r"\s*\S.*?\s*".join(map(re.escape, re.split(r" *\.\.\. *", line)))


class Reader:
    """A reader who follows a page in an empty folder, with the command `horolog` and a broker."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self.address = address
        self._tests: list[Path] = []
        self.environ = os.environ | {
            "PATH": f"{forking.forker().command.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
            "HOROLOG_BOOTSTRAP": address,
            "HOROLOG_TZ": "UTC",
            "HOME": str(folder),
            "COLUMNS": "200",
        }

    def follow(self, block: Block) -> None:
        """Run a block; AssertionError if it fails, or prints something else."""
        {"console": self._console, "sh": self._sh, "python": self._python}[block.language](block)

    def run_tests(self) -> None:
        """Run the tests of the blocks that were followed, in one session: to start pytest takes longer than most of them."""
        if not self._tests:
            return
        words = [sys.executable, "-m", "pytest", "-q", "-p", "horolog.testing.plugin", "-o", "asyncio_mode=auto"]
        code, printed = self._run([*words, *map(str, self._tests)])
        assert code == 0, printed

    def _run(self, words: list[str]) -> tuple[int, str]:
        ended = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
        return ended.returncode, ended.stdout

    def _here(self, text: str) -> str:
        for address in ADDRESSES:
            text = text.replace(address, self.address)
        return text

    def _console(self, block: Block) -> None:
        for step in steps(block.text):
            _, printed = self._run(["bash", "-c", self._here(step.command)])
            assert prints(step.expected, printed), f"{block.page}: $ {step.command}\n{printed}"

    def _sh(self, block: Block) -> None:
        for command in commands(block.text):
            if re.search(r"\bhorolog serve\b", command):
                self._serve(block, command)
                continue
            code, printed = self._run(["bash", "-c", self._here(command)])
            assert code == 0, f"{block.page}: {command}\n{printed}"

    def _serve(self, block: Block, command: str) -> None:
        """Start the page's server on a free port, and end it once it is ready."""
        words, _, comment = command.partition("  #")
        text = f"{words} --set listeners=PLAINTEXT://127.0.0.1:0 #{comment}".replace("/var/lib/", f"{self.folder}/")
        with subprocess.Popen(
            ["bash", "-c", text.replace("horolog serve", "exec horolog serve")],
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            said = []
            for line in process.stdout:
                said.append(line)
                if " ready on " in line:
                    process.terminate()
            assert process.wait(_COMMAND_SECONDS) == 0, f"{block.page}: {command}\n{''.join(said)}"

    def _python(self, block: Block) -> None:
        if re.search(r"^(async )?def test_", block.text, re.MULTILINE):
            path = self.folder / f"test_of_line_{block.line}.py"
            path.write_text(block.text)
            self._tests.append(path)
            return
        code, printed = self._run([sys.executable, "-c", self._here(block.text)])
        assert code == 0, f"{block.page}, line {block.line}\n{printed}"
        expected = (block.prints or "").splitlines()
        assert prints(expected, _SLOW_STEP.sub("", printed)), f"{block.page}, line {block.line}\n{printed}"
