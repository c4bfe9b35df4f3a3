"""Renders a nested value (JSON, or decoded Avro, Protobuf and MessagePack) as a tree to fold open; pure.

Objects and lists are `details`, so it needs no script. Its size is bounded: by the number of parts, their depth, and the
length of each text; omissions are marked in their places.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from markupsafe import Markup

from horolog.client.decoding import plain_text
from horolog.client.decoding.values import as_json
from horolog.console.rendering import omitted, short, visible

DEEPEST = 30
OPEN_LEVELS = 2
"""Deeper parts are folded at first."""
LONGEST_TEXT = 1000
LONGEST_NAME = 120

_LIST = Markup('<ul class="tree">{}</ul>')
_LEAF = Markup('<li><span class="field">{}</span> <span class="{}">{}</span></li>')
_FOLD = Markup(
    '<li><details{}><summary><span class="field">{}</span> <span class="quiet">{}</span></summary>{}</details></li>'
)
_REST = Markup('<li class="quiet">{}</li>')
_TOO_DEEP = Markup('<ul class="tree"><li class="quiet">deeper than is shown</li></ul>')


@dataclass(slots=True)
class _Room:
    parts: int


def tree_of(value: Any, most_parts: int) -> Markup | None:
    """The tree; None for a value without parts."""
    if not isinstance(value, (dict, list)) or not value:
        return None
    return _parts(value, _Room(most_parts), 1)


def _parts(value: dict[Any, Any] | list[Any], room: _Room, level: int) -> Markup:
    if level > DEEPEST:
        return _TOO_DEEP
    shown = []
    named: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in islice(named, max(room.parts, 0)):
        if room.parts <= 0:
            break
        room.parts -= 1
        shown.append(_part(name, part, room, level))
    if len(shown) < len(value):
        shown.append(_REST.format(omitted(len(value) - len(shown))))
    return _LIST.format(Markup().join(shown))


def _part(name: Any, value: Any, room: _Room, level: int) -> Markup:
    field = visible(short(plain_text(name), LONGEST_NAME))
    if isinstance(value, (dict, list)) and value:
        is_open = Markup(" open") if level < OPEN_LEVELS else Markup()
        return _FOLD.format(is_open, field, _said(value), _parts(value, room, level + 1))
    kind = "text" if isinstance(value, str) else "bare"
    text = f'"{value}"' if isinstance(value, str) else as_json(value)
    return _LEAF.format(field, kind, visible(short(text, LONGEST_TEXT)))


def _said(value: dict[Any, Any] | list[Any]) -> str:
    count = f"{len(value):,}"
    return f"{{{count}}}" if isinstance(value, dict) else f"[{count}]"
