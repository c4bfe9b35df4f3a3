"""Whether a member may acknowledge what it acknowledges, and in which segments (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from horolog.broker.share.terms import Acknowledgement, AcknowledgeType, Limits, Refused
from horolog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from horolog.broker.share.partition import SharePartition
    from horolog.broker.share.runs import OffsetRun

_LARGEST_TYPE: Final = max(AcknowledgeType)
_type_of = itemgetter(1)


class AlikeOffsets(NamedTuple):
    """Consecutive offsets that are acknowledged alike."""

    first: int
    last: int
    type: AcknowledgeType


def segments(
    partition: SharePartition, member: str, acknowledgements: Sequence[Acknowledgement], limits: Limits
) -> list[AlikeOffsets] | Refused:
    """The segments of all acknowledgements, above the partition's start; or the first reason against one of them."""
    malformed = malformed_in(acknowledgements)
    if malformed is not None:
        return malformed
    found: list[AlikeOffsets] = []
    for one in acknowledgements:
        refusal = _against(partition, member, one, limits)
        if refusal is not None:
            return refusal
        found += _segments(one, partition.start)
    return found


def malformed_in(acknowledgements: Sequence[Acknowledgement]) -> Refused | None:
    """Acknowledgements that make no sense, whatever is in flight: they ascend, and have one type or one for each offset."""
    next_offset = -1
    for first, last, types in acknowledgements:
        if first > last:
            return Refused(ErrorCode.INVALID_REQUEST, "an acknowledgement ends before it begins")
        if first < next_offset:
            return Refused(ErrorCode.INVALID_REQUEST, "acknowledgements overlap or do not ascend")
        if len(types) != 1 and len(types) != last - first + 1:
            return Refused(ErrorCode.INVALID_REQUEST, "an acknowledgement has neither one type nor one for each offset")
        if not all(0 <= kind <= _LARGEST_TYPE for kind in types):
            return Refused(ErrorCode.INVALID_REQUEST, f"an acknowledge type is unknown: {list(types)[:20]}")
        next_offset = last + 1
    return None


def _segments(one: Acknowledgement, start: int) -> Iterator[AlikeOffsets]:
    if len(one.types) == 1:
        if one.last >= start:
            yield AlikeOffsets(max(one.first, start), one.last, AcknowledgeType(one.types[0]))
        return
    for kind, group in groupby(enumerate(one.types, one.first), _type_of):
        offsets = [offset for offset, _ in group if offset >= start]
        if offsets:
            yield AlikeOffsets(offsets[0], offsets[-1], AcknowledgeType(kind))


def _against(partition: SharePartition, member: str, one: Acknowledgement, limits: Limits) -> Refused | None:
    if one.last < partition.start:
        return None  # it has become of no interest
    if not partition.runs:
        reason = "No record is in flight at these offsets."
        return Refused(ErrorCode.INVALID_RECORD_STATE, reason)
    if one.first >= partition.end:
        reason = "The acknowledgement begins beyond the records in flight."
        return Refused(ErrorCode.INVALID_REQUEST, reason)
    if one.last >= partition.end:
        reason = "The acknowledgement ends beyond the records in flight."
        return Refused(ErrorCode.INVALID_REQUEST, reason)
    if not limits.may_renew and AcknowledgeType.RENEW in one.types:
        return Refused(ErrorCode.INVALID_RECORD_STATE, "The group does not allow locks to be renewed.")
    return _against_runs(partition.runs.between(max(one.first, partition.start), one.last), member)


def _against_runs(runs: Sequence[OffsetRun], member: str) -> Refused | None:
    for run in runs:
        if not run.is_acquired:
            reason = "A record is not acquired, or it is acknowledged already."
            return Refused(ErrorCode.INVALID_RECORD_STATE, reason)
        if run.member != member:
            return Refused(ErrorCode.INVALID_RECORD_STATE, "The member is not the owner of a record.")
    return None
