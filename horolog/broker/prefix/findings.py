"""What a check of a prefix reports, one finding for each fault."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from horolog.base.readable import counted


class FindingKind(StrEnum):
    """Objects that are left over cost money, and do no harm."""

    MISSING = "missing"
    DAMAGED = "damaged"
    LEFT_OVER = "left over"


class Finding(NamedTuple):
    """`name` is the key of an object, the folder of several objects, or a partition."""

    kind: FindingKind
    name: str
    reason: str


def missing(name: str, reason: str) -> Finding:
    return Finding(FindingKind.MISSING, name, reason)


def damaged(name: str, reason: object) -> Finding:
    return Finding(FindingKind.DAMAGED, name, str(reason))


def left_over(name: str, objects: Mapping[str, int], reason: str) -> Iterable[Finding]:
    """One finding for all of these objects, which are given with their sizes; none if there are none."""
    if objects:
        amount = f"{counted(len(objects), 'object')}, {counted(sum(objects.values()), 'byte')}"
        yield Finding(FindingKind.LEFT_OVER, name, f"{amount}: {reason}")


def is_fault(finding: Finding) -> bool:
    """Whether records or state of the cluster may be lost."""
    return finding.kind is not FindingKind.LEFT_OVER
