"""Checks the manifests of a prefix: each is whole, they follow one another, and their partitions exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from horolog.broker.bucket import manifest
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.names import key, manifests, number_of
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.on_record.cluster_file import Place
from horolog.broker.prefix.findings import Finding, damaged, left_over
from horolog.broker.prefix.prefix_reader import PrefixReader

FOLDER = "manifest"


class CheckedManifests(NamedTuple):
    """The newest manifest of each partition that has one."""

    newest: Mapping[Place, Manifest]
    findings: tuple[Finding, ...]


def check_manifests(reader: PrefixReader, state: BucketState) -> CheckedManifests:
    of_places: dict[Place, dict[int, int]] = {}
    strange: dict[str, int] = {}
    for name, size in reader.listed(FOLDER).items():
        place, number = _place_of(name), number_of(name)
        if place is None or number is None or not _is_known(state, place):
            strange[name] = size
        else:
            of_places.setdefault(place, {})[number] = size
    checked = reader.each(lambda place: _check(reader, place, sorted(of_places[place])), sorted(of_places))
    findings = [one for _, several in checked for one in several]
    findings += left_over(FOLDER, strange, "no topic has these partitions")
    return CheckedManifests(
        {(one.topic_id, one.partition): one for one, _ in checked if one is not None}, tuple(findings)
    )


def _place_of(name: str) -> Place | None:
    """The partition that a key names."""
    folder, topic_id, partition, *_ = (*name.split("/"), "", "", "")
    try:
        place = bytes.fromhex(topic_id), int(partition)
    except ValueError:
        return None
    return place if name.startswith(f"{manifests(*place)}/") and folder == FOLDER else None


def _is_known(state: BucketState, place: Place) -> bool:
    """Whether a partition exists, or is being deleted."""
    return place in state.leads or any(place[0] in ids for ids in state.deleting.values())


def _check(reader: PrefixReader, place: Place, numbers: list[int]) -> tuple[Manifest | None, list[Finding]]:
    """Read all manifests of a partition, and list them again if its leader has replaced the newest one meanwhile."""
    while True:
        newest, findings, is_gone = _read(reader, place, numbers)
        again = sorted(reader.numbers(manifests(*place))) if is_gone else numbers
        if again == numbers:
            return newest, findings
        numbers = again


def _read(reader: PrefixReader, place: Place, numbers: list[int]) -> tuple[Manifest | None, list[Finding], bool]:
    """The newest one that is whole, the findings, and whether the last number is gone."""
    newest: Manifest | None = None
    findings: list[Finding] = []
    data: bytes | None = None
    for number in numbers:
        name = key(manifests(*place), number)
        data = reader.get(name)
        if data is None:  # a newer one has replaced it
            continue
        try:
            one = manifest.decode(data)
        except FormatError as error:
            findings.append(damaged(name, error))
            continue
        fault = _fault(one, place, number, newest)
        if fault:
            findings.append(damaged(name, fault))
        else:
            newest = one
    return newest, findings, data is None


def _fault(one: Manifest, place: Place, number: int, before: Manifest | None) -> str:
    """The first rule that a manifest breaks; empty if it keeps all of them."""
    if ((one.topic_id, one.partition), one.number) != (place, number):
        return f"manifest {one.number} of partition {one.partition} of {one.topic_id.hex()} under this key"
    if before is not None and (one.epoch < before.epoch or one.start_offset < before.start_offset):
        return f"epoch {one.epoch}, start {one.start_offset}, behind epoch {before.epoch}, start {before.start_offset}"
    return ""
