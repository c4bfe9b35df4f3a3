"""Items as values, and as lines of text: names as in Kafka's own tool, readable times next to the numbers."""

import base64
from collections.abc import Callable
from typing import Any

from horolog.commands.tables import printable

Item = dict[str, Any]

TROUBLE = ("damage", "problem")
"""Items that make the command end with ALERT."""
_INDENTED = {"record": "| ", "damage": "!! ", "problem": "!! "}
_UNSAID_IN_TEXT = {"type", "timestamp_type", "batch_position", "entry"}
_KEPT_EMPTY = ("header_keys",)
"""Other empty lists are left out of the text."""
_KAFKAS_NAMES = {"is_valid": "isvalid", "codec": "compresscodec", "size_bytes": "size", "value": "payload"}


def text_line(item: Item, show_time: Callable[[int], str]) -> str:
    """An item as one line for people."""
    kind = item["type"]
    if kind == "file":
        return f"Dumping {item['path']} ({item['kind']}, {item['size_bytes']} bytes)"
    head = _INDENTED.get(kind, "")
    lead = f"{kind} " if kind in {"damage", "problem", "summary", "padding"} else ""
    said = (
        (name, value)
        for name, value in item.items()
        if name not in _UNSAID_IN_TEXT and (value != [] or name in _KEPT_EMPTY)
    )
    pairs = [_pair(name, value, item, show_time) for name, value in said]
    return head + lead + " ".join(pairs)


def _pair(name: str, value: Any, item: Item, show_time: Callable[[int], str]) -> str:
    if name == "timestamp":
        name = item.get("timestamp_type", "timestamp")
    if isinstance(value, int) and not isinstance(value, bool) and _is_time(name):
        shown = f"{value} ({show_time(value)})" if value >= 0 else str(value)
        return f"{_camel(name)}: {shown}"
    return f"{_camel(name)}: {_shown(value)}"


def _is_time(name: str) -> bool:
    return name.endswith("timestamp") or name in {"CreateTime", "LogAppendTime", "NoTimestampType", "delete_horizon_ms"}


def _camel(name: str) -> str:
    if name in _KAFKAS_NAMES:
        return _KAFKAS_NAMES[name]
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{','.join(_shown(one) for one in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_shown(one)}' for key, one in value.items())}}}"
    return printable(str(value))


def put_bytes(item: Item, name: str, value: bytes | None) -> None:
    """Add bytes: as text under `name` if they are UTF-8, else in base64 under `name_base64`. No bytes are null."""
    try:
        item[name] = None if value is None else value.decode()
    except UnicodeDecodeError:
        item[f"{name}_base64"] = base64.b64encode(value or b"").decode()
