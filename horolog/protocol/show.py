"""Messages as people read them, in logs and tools: error codes by name, ids as Kafka prints them, long things cut short."""

from typing import Any, Final

from horolog.protocol.errors import ErrorCode
from horolog.protocol.primitives import Buffer, records_size
from horolog.protocol.uuids import show_uuid
from horolog.protocol.wire import ArrayType, Field, Struct, WireType, int16, record_set, uuid

BYTES_SHOWN: Final = 32
CHARACTERS_SHOWN: Final = 256
ITEMS_SHOWN: Final = 16

_ERROR_NAMES: Final = {int(code): code.name for code in ErrorCode}


def show(message: Struct, *, everything: bool = False) -> str:
    """One line; fields at their default are left out unless `everything` is asked for."""
    inner = ", ".join(f"{name}={_value(declared, value)}" for name, declared, value in _fields(message, everything))
    return f"{type(message).__name__}({inner})"


def show_lines(message: Struct, *, everything: bool = False, indent: str = "") -> list[str]:
    """One line per field, structs inside indented below."""
    lines = []
    for name, declared, value in _fields(message, everything):
        if isinstance(value, Struct):
            lines.append(f"{indent}{name}:")
            lines += show_lines(value, everything=everything, indent=indent + "  ")
        elif isinstance(value, list) and value and isinstance(value[0], Struct):
            lines.append(f"{indent}{name}:")
            lines += _item_lines(value, everything, indent + "  ")
        else:
            lines.append(f"{indent}{name}: {_value(declared, value)}")
    return lines


def _item_lines(items: list[Struct], everything: bool, indent: str) -> list[str]:
    lines = []
    for item in items[:ITEMS_SHOWN]:
        inner = show_lines(item, everything=everything, indent=indent + "  ") or [f"{indent}  (defaults)"]
        lines += [f"{indent}- {inner[0].lstrip()}", *inner[1:]]
    if len(items) > ITEMS_SHOWN:
        lines.append(f"{indent}- ... {len(items)} in all")
    return lines


def _fields(message: Struct, everything: bool) -> list[tuple[str, Field, Any]]:
    found = [(name, declared, getattr(message, name)) for name, declared in message.FIELDS.items()]
    return [each for each in found if everything or each[2] != each[1].make_default()]


def _value(declared: Field, value: Any) -> str:
    if value is not None and declared.type is int16 and declared.name.endswith("error_code"):
        return f"{value} {_ERROR_NAMES.get(value, 'unknown')}"
    return _typed(declared.type, value)


def _typed(wire_type: WireType[Any], value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, Struct):
        return show(value)
    if isinstance(wire_type, ArrayType):
        items = [_typed(wire_type.element, item) for item in value[:ITEMS_SHOWN]]
        more = [f"... {len(value)} in all"] if len(value) > ITEMS_SHOWN else []
        return f"[{', '.join(items + more)}]"
    if wire_type is uuid:
        return show_uuid(value)
    if wire_type is record_set:
        return f"<{records_size(value)} bytes of records>"
    if isinstance(value, Buffer):
        dots = f"... {len(value)} in all" if len(value) > BYTES_SHOWN else ""
        return bytes(value[:BYTES_SHOWN]).hex() + dots
    if isinstance(value, str):
        dots = f"... {len(value)} in all" if len(value) > CHARACTERS_SHOWN else ""
        return f"{value[:CHARACTERS_SHOWN]!r}{dots}"
    return str(value)
