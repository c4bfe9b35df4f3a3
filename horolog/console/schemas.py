"""The page Schemas: subjects of the registry, their versions and compatibility, and what changed between two versions."""

import json
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from horolog.client.wire.http_get import NoAnswer, get
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from horolog.client.decoding import RegistryAccess

ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
SUBJECTS_AT_MOST = 500
LINES_AT_MOST = 2000
_FOUND, _MISSING = 200, 404
_REFUSED = frozenset({401, 403})


class SchemaVersion(NamedTuple):
    number: int
    id: str
    kind: str
    """AVRO, JSON or PROTOBUF."""
    text: str
    references: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """Laid out, if it is JSON, so that a difference is a line."""
        try:
            return json.dumps(json.loads(self.text), indent=2, ensure_ascii=False).splitlines()
        except (ValueError, RecursionError):
            return self.text.splitlines()


class DiffLine(NamedTuple):
    """`kind`: added, removed, place or same."""

    kind: str
    text: str


async def page(visit: Visit) -> Response:
    access = visit.desk.options.registry
    if access is None:
        raise Refused("this console has no schema registry; start it with --registry URL", 404)
    subject, text = visit.text("subject"), visit.text("filter")
    names = sorted(map(str, await _asked(access, "/subjects", "subjects", list)))
    found = [name for name in names if text.lower() in name.lower()]
    listed = {"names": found[:SUBJECTS_AT_MOST], "left_out": max(0, len(found) - SUBJECTS_AT_MOST), "filter": text}
    if not subject:
        return visit.page("schemas.html", registry=access.name, subject="", **listed)
    return visit.page("schemas.html", registry=access.name, subject=subject, **listed, **await _subject(visit, access))


async def _subject(visit: Visit, access: "RegistryAccess") -> dict[str, Any]:
    """The values of one subject: the wanted version beside the one before it, or another."""
    subject = visit.text("subject")
    path = f"/subjects/{quote(subject, safe='')}/versions"
    answer = await _asked(access, path, f"subject {subject!r}", list)
    numbers = sorted(number for number in answer if isinstance(number, int))
    if not numbers:
        raise Refused(f"subject {subject!r} has no versions", 404)
    number = visit.number("version", numbers[-1], 1)
    earlier = [one for one in numbers if one < number]
    other = visit.number("with", earlier[-1] if earlier else 0)
    shown = await _version(access, path, number)
    before = await _version(access, path, other) if other else None
    level, is_own = await _compatibility(access, subject)
    lines = [] if before is None else difference(before, shown)
    return {
        "numbers": numbers,
        "shown": shown,
        "before": before,
        "level": level,
        "is_own": is_own,
        "difference": lines[:LINES_AT_MOST],
        "text": shown.lines[:LINES_AT_MOST],
        "is_cut": max(len(lines), len(shown.lines)) > LINES_AT_MOST,
    }


async def _version(access: "RegistryAccess", path: str, number: int) -> SchemaVersion:
    found = await _asked(access, f"{path}/{number}", f"version {number}", dict)
    references = found.get("references") or ()
    names = tuple(str(one.get("name")) for one in references if isinstance(one, dict))
    kind = str(found.get("schemaType") or "AVRO")
    return SchemaVersion(number, str(found.get("id", "")), kind, str(found.get("schema")), names)


async def _compatibility(access: "RegistryAccess", subject: str) -> tuple[str, bool]:
    """The level, and whether it is the subject's own; empty if it is not known."""
    for path, is_own in ((f"/config/{quote(subject, safe='')}", True), ("/config", False)):
        try:
            found = await _asked(access, path, "compatibility", dict)
        except Refused:
            continue
        return str(found.get("compatibilityLevel") or found.get("compatibility") or ""), is_own
    return "", False


async def _asked(access: "RegistryAccess", path: str, what: str, form: type) -> Any:
    """The registry's answer. Raises Refused."""
    try:
        answer = await get(access, path, accept=ACCEPT)
    except NoAnswer as error:
        raise Refused(f"the registry {access.name} {error}", 502) from error
    if answer.status == _MISSING:
        raise Refused(f"the registry {access.name} has no {what}", 404)
    if answer.status in _REFUSED:
        raise Refused(f"the registry {access.name} does not accept the console's credentials", 502)
    try:
        found = json.loads(answer.body) if answer.status == _FOUND else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, form):
        raise Refused(f"the registry {access.name} answers {answer.status} when asked for {what}", 502)
    return found


def difference(before: SchemaVersion, after: SchemaVersion) -> list[DiffLine]:
    """The changed lines with some around them; empty if nothing has changed."""
    return list(map(_diff_line, list(unified_diff(before.lines, after.lines, lineterm=""))[2:]))


def _diff_line(line: str) -> DiffLine:
    kinds = {"+": "added", "-": "removed", "@": "place"}
    return DiffLine(kinds.get(line[:1], "same"), line)
