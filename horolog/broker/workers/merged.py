"""Merges the workers' HTTP responses into one: metrics get the label `worker`, readiness names workers that are not ready. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_FAMILY = "# HELP "
_NAME_ENDS = re.compile("[ {]")
OK, REFUSALS = 200, (400, 404)


def expositions(texts: Mapping[int, str]) -> Iterator[str]:
    """Prometheus' text form, a family at a time: what each worker counts, by its number. Families keep the order of the first."""
    heads: dict[str, str] = {}
    samples: dict[str, list[str]] = {}
    for number, text in texts.items():
        for family in _families(text):
            help_line, type_line, *counted = family.splitlines()
            name = help_line.split(" ", 3)[2]
            heads.setdefault(name, f"{help_line}\n{type_line}\n")
            samples.setdefault(name, []).extend(_labelled(line, number) for line in counted)
    for name, head in heads.items():
        yield head + "".join(samples[name])


def _families(text: str) -> Iterable[str]:
    """Heads stand at the begin of a line; a label's value has no line of its own."""
    return [_FAMILY + family for family in ("\n" + text).split("\n" + _FAMILY)[1:]]


def _labelled(sample: str, number: int) -> str:
    """A sample with one label more. Names have neither blanks nor braces, so what ends the name is the first of them."""
    end = _NAME_ENDS.search(sample)
    assert end is not None, sample
    name, rest = sample[: end.start()], sample[end.end() :]
    return f'{name}{{worker="{number}",{rest}\n' if end[0] == "{" else f'{name}{{worker="{number}"}} {rest}\n'


@dataclass(frozen=True, slots=True)
class WorkerReadiness:
    """One worker's report of its readiness: the fields of `observability.health.Readiness`."""

    ready: bool
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def said(answer: bytes) -> WorkerReadiness:
    """A worker's readiness; a worker without a valid response is not ready."""
    try:
        found = json.loads(answer)
        return WorkerReadiness(bool(found["ready"]), list(found["reasons"]), list(found["warnings"]))
    except (ValueError, KeyError, TypeError):
        return WorkerReadiness(ready=False, reasons=["it does not answer"])


def readiness(phase: str, workers: Mapping[int, WorkerReadiness], of_all: Iterable[str] = ()) -> dict[str, object]:
    """All workers have to be ready. A warning of all workers is listed once, and those `of_all` behind it."""
    reasons = [f"worker {number}: {reason}" for number, one in workers.items() for reason in one.reasons]
    warnings: dict[str, None] = {}
    for number, one in workers.items():
        for warning in one.warnings:
            is_everybodys = all(warning in other.warnings for other in workers.values())
            warnings[warning if is_everybodys else f"worker {number}: {warning}"] = None
    ready = phase == "ready" and all(one.ready for one in workers.values())
    return {"ready": ready, "phase": phase, "reasons": reasons, "warnings": [*warnings, *of_all]}


def logs(answers: Mapping[int, tuple[int, bytes]]) -> tuple[int, bytes]:
    """The workers' pages of a topic merged into one; status and body. `unanswered` names workers that gave none and did not refuse.

    A worker that does not know a new topic yet, or is starting, does not hide what others report.
    """
    found: dict[str, Any] | None = None
    refused: tuple[int, bytes] | None = None
    unanswered = []
    for number, (status, body) in answers.items():
        page = _page(body) if status == OK else None
        if page is None:
            if status in REFUSALS:
                refused = refused or (status, body)
            else:
                unanswered.append(number)
        elif found is None:
            found = page
        else:
            found["partitions"] += page["partitions"]
    if found is None:
        return refused or (503, b'{"error": "no worker answers"}\n')
    found["partitions"].sort(key=lambda one: one["partition"])
    return OK, json.dumps({**found, "unanswered": unanswered}).encode() + b"\n"


def _page(body: bytes) -> dict[str, Any] | None:
    """None for an answer that broke off."""
    try:
        page = json.loads(body)
    except ValueError:
        return None
    return page if isinstance(page, dict) and isinstance(page.get("partitions"), list) else None
