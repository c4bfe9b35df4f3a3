"""Turns data into the text of a page: templates that escape everything, and the formats of numbers and times."""

import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import tzinfo
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from horolog.base.readable import counted, format_distance, format_time, setting_text, spoken_time

FOLDER: Final = Path(__file__).parent
UNKNOWN: Final = Markup('<span class="unknown">not known</span>')
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
LONGEST_SHOWN: Final = 120
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls, characters that reverse others or have no width, and lone surrogates; those that join letters stay."""


class CompiledTemplates(BytecodeCache):
    """Caches compiled templates where and if Python caches its compiled modules: compiling takes a tenth of a cold start.

    A bucket records the source, Jinja and Python of its code; a template whose bucket cannot be read or written is compiled again.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError, EOFError, ValueError, UnpicklingError), _place_of(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        place = _place_of(bucket)
        unfinished = place.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(bucket.bytecode_to_string())
            unfinished.replace(place)


def _place_of(bucket: Bucket) -> Path:
    return Path(cache_from_source(str(FOLDER / "templates" / f"{bucket.key}.html")))


@cache
def environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=CompiledTemplates(),
    )
    found.filters |= {
        "count": count,
        "counted": counted,
        "omitted": omitted,
        "bytes": size,
        "rate": rate,
        "dollars": dollars,
        "span": span,
        "short": short,
        "visible": visible,
        "seconds": lambda value: UNKNOWN if value is None else span(round(value * 1000)),
    }
    found.globals["setting"] = setting_text
    return found


def render(template: str, data: Mapping[str, Any]) -> str:
    return environment().get_template(template).render(data)


def count(value: float | None) -> str:
    """An integer, in groups of three digits."""
    return UNKNOWN if value is None else f"{round(value):,}"


def omitted(count: int) -> str:
    """What the end of a list that is cut says: `1 more is not shown`."""
    return f"{count:,} more {'is' if count == 1 else 'are'} not shown"


def size(value: float | None) -> str:
    """Bytes in the largest unit that leaves a digit before the point."""
    if value is None or value < 0:
        return UNKNOWN
    number, unit = float(value), 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.0f} B" if unit == 0 else f"{number:.{1 if number < 100 else 0}f} {_UNITS[unit]}"


def rate(value: float | None) -> str:
    """A number per second."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}/s" if value >= 10 or value == 0 else f"{value:.2g}/s"


def dollars(value: float | None) -> str:
    """An amount of money, with two digits at least."""
    if value is None:
        return UNKNOWN
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.2g}"


def span(value_ms: float | None) -> str:
    """A duration in its two largest units, in whole seconds from one second on."""
    if value_ms is None:
        return UNKNOWN
    ms = round(value_ms)
    return format_distance(ms - ms % 1000 if ms >= 1000 else ms)


def short(value: str, longest: int = LONGEST_SHOWN) -> str:
    return value if len(value) <= longest else value[: longest - 1] + "…"


def written_out(text: str) -> str:
    r"""Text with characters that are invisible, or change how others look, as escapes: \x1b, \u202e. Line ends stay."""
    return text if text.isprintable() else _UNSEEN.sub(lambda found: _escaped(found[0]), text.replace("\r\n", "\n"))


def visible(text: str) -> str:
    """The same for a page, with the escapes set apart from the text."""
    if text.isprintable():
        return text
    pieces, end = [Markup()], 0
    text = text.replace("\r\n", "\n")
    for found in _UNSEEN.finditer(text):
        pieces += [escape(text[end : found.start()]), _SIGN.format(_escaped(found[0]))]
        end = found.end()
    return Markup().join([*pieces, escape(text[end:])])


_SIGN = Markup('<span class="sign">{}</span>')


def _escaped(sign: str) -> str:
    code = ord(sign)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class Times:
    """Times as pages show them, in one zone."""

    def __init__(self, zone: tzinfo, now_ms: int) -> None:
        self._zone = zone
        self.now_ms = now_ms

    def iso(self, ms: int) -> str:
        return format_time(ms, self._zone)

    def plain(self, ms: int) -> str:
        """A time without the zone, which the page shows once; milliseconds only if not zero."""
        text = format_time(ms, self._zone)
        text = text[:23] if len(text) > 23 else text
        return text.replace("T", " ").removesuffix(".000")

    def show(self, ms: int | None) -> Markup:
        if ms is None or ms < 0:
            return UNKNOWN
        iso = escape(self.iso(ms))
        said = spoken_time(ms, self._zone) if iso.startswith("@") else self.plain(ms)
        return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(iso, said)

    def ago(self, ms: int | None) -> Markup:
        """How long before now, or ahead of it."""
        if ms is None or ms < 0:
            return UNKNOWN
        distance = self.now_ms - ms
        said = f"{span(distance)} ago" if distance >= 0 else f"{span(-distance)} ahead"
        kind = "past" if distance >= 0 else "future"
        return Markup('<time datetime="{0}" title="{0}" class="{2}">{1}</time>').format(self.iso(ms), said, kind)


def link(path: str, **values: Any) -> str:
    """An address with query values; empty ones are left out."""
    said = {key: value for key, value in values.items() if value not in {None, ""}}
    return f"{path}?{urlencode(said)}" if said else path
