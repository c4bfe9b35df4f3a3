"""Functions that list the error codes in a response, generated for each class from its declaration.

A response without errors costs one comparison for each place that could hold one.
"""

from collections.abc import Callable
from typing import Any

from horolog.protocol.source_writer import Sheet, define
from horolog.protocol.wire import ArrayType, Struct, StructType

FindErrors = Callable[[Any], list[int] | None]


def error_finder(response: type[Struct], *, flat: bool = False) -> FindErrors:
    """A function that lists the error codes in a response; None if there are none. A flat response is made of tuples."""
    sheet = Sheet({})
    with sheet.block("def find_errors(answer):"):
        sheet.line("found = None")
        _write_search(sheet, response, "answer", 0, flat=flat)
        sheet.line("return found")
    find: FindErrors = define(sheet.text(), "find_errors", f"<errors of {response.__name__}>", sheet.constants)
    return find


def _write_search(sheet: Sheet, struct: type[Struct], place: str, depth: int, *, flat: bool) -> None:
    for index, (name, declared) in enumerate(struct.FIELDS.items()):
        value = f"{place}[{index}]" if flat else f"{place}.{name}"
        if name.endswith("error_code"):
            with sheet.block(f"if {value}:"):
                sheet.line("found = found or []")
                sheet.line(f"found.append({value})")
        inner = declared.type.element if isinstance(declared.type, ArrayType) else declared.type
        if not isinstance(inner, StructType) or not _has_errors(inner.struct):
            continue
        one = f"one_{depth}"
        if isinstance(declared.type, ArrayType):
            with sheet.block(f"for {one} in {value} or ():"):
                _write_search(sheet, inner.struct, one, depth + 1, flat=flat)
        else:
            sheet.line(f"{one} = {value}")
            with sheet.block(f"if {one} is not None:"):
                _write_search(sheet, inner.struct, one, depth + 1, flat=flat)


def _has_errors(struct: type[Struct]) -> bool:
    """Whether an error code can stand anywhere in a struct."""
    for name, declared in struct.FIELDS.items():
        if name.endswith("error_code"):
            return True
        inner = declared.type.element if isinstance(declared.type, ArrayType) else declared.type
        if isinstance(inner, StructType) and _has_errors(inner.struct):
            return True
    return False
