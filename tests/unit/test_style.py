"""The style rules of the design page hold for every file of the project."""

import ast
import re
import subprocess
import textwrap

import pytest

from tests.support import style


def none(found):
    assert not found, "\n" + "\n".join(found)


def test_vendored_tools_are_left_out():
    vendored = [path for path in style.tracked_files() if path.suffix == ".py" and style.VENDOR in path.parents]
    assert vendored
    assert not set(vendored) & set(style.python_files())


def test_functions_are_short():
    found = [one for path in style.python_files() for one in style.functions(path)]
    none([f"{one.where}: {one.lines} lines" for one in found if one.lines > style.MAX_FUNCTION_LINES])


def test_functions_are_flat():
    found = [one for path in style.python_files() for one in style.functions(path)]
    none([f"{one.where}: {one.nesting} deep" for one in found if one.nesting > style.MAX_NESTING])


def test_files_are_short():
    sizes = {str(path.relative_to(style.PROJECT)): style.line_count(path) for path in style.python_files()}
    none([f"{name}: {lines} lines" for name, lines in sizes.items() if lines > style.MAX_FILE_LINES])


def test_nothing_is_imported_through_the_links_at_the_top():
    """They are there for short paths; imported, they would be a second copy of everything."""
    found = [f"{path}: {name}" for path in style.python_files() for name in style.imported(path)]
    none([one for one in found if one.rpartition(": ")[2].partition(".")[0] in style.LINKS])


def test_nobody_outside_imports_past_the_front_of_a_room():
    """Unit tests of a room's inside may."""
    paths = [path for path in style.python_files() if "tests" not in path.relative_to(style.PROJECT).parts]
    none([line for path in paths for line in style.past_a_front(path)])
    behind = {
        "tests/unit/broker/log/partition/test_rolling.py": ": rolling of horolog.broker.log.partition",
        "tests/unit/client/producing/test_verdicts.py": ": verdicts of horolog.client.producing",
    }
    for test, hidden in behind.items():
        assert any(hidden in line for line in style.past_a_front(style.PROJECT / test))


def test_a_front_shows_no_module_that_is_gone():
    fronts = [path for path in style.python_files() if path.name == "__init__.py" and style.is_room(package_of(path))]
    assert len(fronts) > 40
    none(
        [
            f"{package_of(path)}: {name}"
            for path in fronts
            for name in style.names_shown(path)
            if not is_there(path, name)
        ]
    )


def package_of(front):
    return ".".join(front.relative_to(style.PROJECT).parent.parts)


def is_there(front, name):
    beside = front.parent / name
    return (
        beside.with_suffix(".py").exists()
        or beside.is_dir()
        or len(re.findall(rf"\b{name}\b", front.read_text("utf-8"))) > 1
    )


def test_links_of_the_repository_lead_to_what_it_has():
    """One that leads out of it takes the place of what lies there in every other checkout."""
    tracked = subprocess.run(["git", "ls-files", "-s"], cwd=style.PROJECT, capture_output=True, text=True, check=False)
    kept = [line.split("\t")[1] for line in tracked.stdout.splitlines() if line.startswith("120000")]
    none([f"{name} -> {style.PROJECT.joinpath(name).readlink()}" for name in kept if not is_inside(name)])
    assert not kept or {"broker", "client", "protocol"} <= set(kept)


def is_inside(name):
    path = style.PROJECT / name
    return (
        not path.readlink().is_absolute() and path.resolve().is_relative_to(style.PROJECT.resolve()) and path.exists()
    )


def test_one_module_knows_where_the_fields_of_a_head_lie():
    packages = style.PROJECT / "horolog"
    apart = {packages / "protocol/records/head.py", packages / "broker/log/indexes/time_index.py"}
    paths = [path for path in style.python_files() if packages in path.parents and path not in apart]
    none([line for path in paths for line in style.layouts_of_heads(path)])
    assert len(list(style.layouts_of_heads(packages / "protocol/records/head.py"))) > 10


def test_handlers_ask_the_placement_who_leads():
    """The settings' number of this broker answers who this is; who leads, coordinates or controls is the placement's to say."""
    handlers = style.PROJECT / "horolog/broker/handlers"
    paths = [path for path in style.python_files() if handlers in path.parents]
    assert paths
    none([line for path in paths for line in style.reads_of(path, {"node_id", "advertised"})])
    assert list(style.reads_of(style.PROJECT / "horolog/broker/server/process.py", {"node_id"}))


def test_no_exception_is_raised_that_others_raise_too():
    """Each time it is raised a traceback is added to it, and with that whatever the functions on the way have in hand."""
    shared = [
        f"{path}:{node.lineno}"
        for path in style.PROJECT.joinpath("horolog").rglob("*.py")
        if re.search(r"\braise [A-Z_][A-Z0-9_]*\b", text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name) and node.exc.id.isupper()
    ]
    assert not shared, shared


BEHIND_A_BRACKET = re.compile(r"\s*[)\]}]+:?  # (?!noqa|type:|fmt:)")


def test_a_comment_stands_above_what_it_splits_over_lines():
    """The formatter has split a line for the comment at its end."""
    found = [(path, path.read_text().splitlines()) for path in style.python_files()]
    none(
        [
            f"{path.relative_to(style.PROJECT)}:{number}: {line.strip()}"
            for path, lines in found
            for number, line in enumerate(lines, 1)
            if BEHIND_A_BRACKET.match(line)
        ]
    )


def test_every_module_opens_with_a_sentence():
    duties = {str(path.relative_to(style.PROJECT)): style.duty(path) for path in style.python_files()}
    none([f"{name}: {duty}" for name, duty in duties.items() if not style.is_sentence(duty)])


def test_no_file_names_a_machine_or_a_package_index():
    none([line for path in style.tracked_files() for line in style.unwanted(path)])


@pytest.mark.parametrize(
    ("body", "depth"),
    [
        ("pass", 0),
        ("if a:\n    pass\nelif b:\n    pass\nelse:\n    pass", 1),
        ("if a:\n    pass\nelif b:\n    for c in d:\n        pass", 2),
        ("if a:\n    pass\nelse:\n    if b:\n        pass\n    pass", 2),
        (
            "for a in b:\n    while c:\n        with d:\n            try:\n                pass\n            finally:\n                pass",
            4,
        ),
        ("def inner():\n    if a:\n        pass", 0),
    ],
)
def test_nesting_counts_blocks(body, depth):
    function = ast.parse("def outer():\n" + textwrap.indent(body, "    ")).body[0]
    assert style.nesting(function) == depth


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("see /ro" + "ot/x", True),
        ("see '/ho" + "me/someone/x'", True),
        ("https://pypi.example/simp" + "le/x", True),
        ("a/ro" + "ot/x and https://kafka.apache.org/documentation", False),
    ],
)
def test_unwanted_names_are_recognised(line, found):
    assert bool(style.UNWANTED.search(line)) is found
