"""Generated code: tracebacks show its lines, constants keep their names apart."""

import traceback

import pytest

from horolog.protocol.source_writer import Sheet, define, layout


def test_a_traceback_shows_the_generated_line() -> None:
    function = define("def fail():\n    return 1 // 0\n", "fail", "<a generated file>", {})
    with pytest.raises(ZeroDivisionError) as caught:
        function()
    shown = "".join(traceback.format_exception(caught.value))
    assert 'File "<a generated file>", line 2' in shown
    assert "return 1 // 0" in shown


def test_a_sheet_indents_blocks() -> None:
    sheet = Sheet({})
    with sheet.block("def f():"):
        with sheet.block("if True:"):
            sheet.line("pass")
        sheet.line("return 1")
    assert sheet.text() == "def f():\n    if True:\n        pass\n    return 1\n"


def test_constants_of_one_name_are_kept_apart() -> None:
    sheet = Sheet({})
    first, second = type("Same", (), {}), type("Same", (), {})
    assert [sheet.constant("Same", each) for each in (first, second, first)] == ["Same", "Same_2", "Same"]
    assert sheet.constants == {"Same": first, "Same_2": second}


def test_layouts_are_big_endian_and_kept() -> None:
    assert layout("hi").pack(1, 2).hex() == "000100000002"
    assert layout("hi") is layout("hi")


def test_a_layout_is_made_once() -> None:
    codes = "hiqh?"
    assert layout(codes) is layout(codes)
    assert layout(codes).size == 17
