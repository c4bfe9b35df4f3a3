"""The reference names what other folders import, with the signature that it has."""

import contextlib
import io
import re
import textwrap

import pytest

from tools import reference

TREE = {
    "horolog/__init__.py": "",
    "horolog/a/__init__.py": '"""The front of a room."""\nfrom horolog.a.inside import Handed\n',
    "horolog/a/inside.py": '''
        """Things that are made here: of several kinds."""

        def used(one: int, *, two: str = "x") -> bool:
            """Whether it is so.
            More is said here."""

        def within(one): ...

        class Handed:
            """Handed on by the package."""

            def __init__(self, size: int) -> None: ...
            async def go(self, where: str) -> None:
                """Goes there."""
            @property
            def size(self) -> int: ...
            def _hidden(self) -> None: ...

        class Pair(NamedTuple):
            first: int
            second: "str"

        def of_module(): ...
        ''',
    "horolog/a/base.py": '''
        """Below it."""

        class Root:
            def __init__(self, name: str) -> None: ...
            def close(self) -> None:
                """Ends it."""
            def told(self) -> str: ...

        class Branch(Root, dict):
            def told(self) -> str:
                """In other words."""
        ''',
    "horolog/a/leaf.py": '''
        """Has what it is made of."""
        from horolog.a.base import Branch

        class Held(Generic[T]):
            def hold(self) -> T: ...

        class Leaf(Branch, Held[int], gone.Far):
            def fall(self) -> None: ...
            def _rot(self) -> None: ...
        ''',
    "horolog/a/neighbour.py": '"""Beside it."""\nfrom horolog.a.inside import within\n',
    "horolog/b/__init__.py": "",
    "horolog/b/user.py": '''
        """Uses them."""
        from horolog.a import Handed, inside
        from horolog.a.inside import Pair, used
        from horolog.a.leaf import Leaf
        inside.of_module()
        ''',
}


@pytest.fixture
def tree(tmp_path):
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return tmp_path


def test_what_others_import_is_shown_and_nothing_else(tree):
    assert reference.reference(tree) == textwrap.dedent("""\
        ## a

        The front of a room.

        ### a.inside

        Things that are made here: of several kinds.

        - `used(one: int, *, two: str='x') -> bool`: Whether it is so.
        - `class Handed(size: int)`: Handed on by the package.
          - `async go(where: str) -> None`: Goes there.
          - `size: int`
        - `class Pair(first: int, second: 'str')`
        - `of_module()`

        ### a.leaf

        Has what it is made of.

        - `class Leaf(name: str)`
          - `fall() -> None`
          - `told() -> str`: In other words.
          - `close() -> None`: Ends it.
          - `hold() -> T`
        """)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The page of this project's code, which takes seconds, and what the command that builds it prints."""
    path = tmp_path_factory.mktemp("reference") / "build" / "reference.md"
    with contextlib.redirect_stdout(io.StringIO()) as output:
        reference.main(path)
    return path.read_text("utf-8"), output.getvalue()


@pytest.fixture
def page(built):
    return built[0]


def test_the_consumer_has_what_it_looks_up_by(page):
    _, _, section = page.partition("- `class Consumer(")
    methods = section.partition("\n- `class")[0]
    assert "`between(" in methods
    assert "`async offsets_for_times(" in methods


def test_every_module_has_its_sentence(page):
    """Below each heading, of a room or of a module, stands the sentence that its docstring begins with."""
    headings = re.findall(r"^#{2,3} .*$", page, re.MULTILINE)
    assert len(headings) > 100
    assert re.findall(r"^(#{2,3} .*)\n\n(?![A-Z`])", page, re.MULTILINE) == []


def test_the_page_is_built_where_it_is_not_kept(built):
    page, output = built
    assert page.startswith("# Reference\n\nWhat each folder")
    assert "reference.md lists what each folder offers" in output
    ignored = (reference.ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert "build/" in ignored
    assert reference.PAGE.is_relative_to(reference.ROOT / "build")


def test_the_page_is_no_wider_than_a_page(page):
    assert [line for line in page.splitlines() if len(line) > 100 and " " in line.strip("- ")] == []
