"""The walk over every file of a data folder: each is hurt in each way, on a real disk, and a real broker says what becomes of it.

`TABLE` is that of docs/durability.md, which has the same rows. A file that no row is about fails the test, so does an outcome that no row
has, and one that nobody is told of where the row says that somebody is.
"""

import asyncio
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.style import PROJECT
from tests.support.whole_folder import Life, harm, life_of_one, life_of_workers, opened

KINDS = ("missing", "empty", "cut", "head", "middle", "last", "older")
NOTHING, REFUSED, NOT = "nothing", "refused", "-"


def flipped(data: bytes, place: int) -> bytes:
    place = max(0, min(place, len(data) - 1))
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda _: None,
    "empty": lambda _: b"",
    "cut": lambda data: data[: -max(1, len(data) // 3)],
    "head": lambda data: flipped(data, 4),
    "middle": lambda data: flipped(data, len(data) // 2),
    "last": lambda data: flipped(data, len(data) - 4),
}


class Row(NamedTuple):
    """What may become of the files of a kind, by the kind of damage; `told` are the kinds that the log tells of, by the file's name."""

    file: str
    pattern: str
    missing: str = NOTHING
    empty: str = NOTHING
    cut: str = NOTHING
    head: str = NOTHING
    middle: str = NOTHING
    last: str = NOTHING
    older: str = NOTHING
    told: tuple[str, ...] = ()

    def allowed(self, kind: str) -> set[str]:
        return set(getattr(self, kind).split(" or "))


CONTENT = ("empty", "cut", "head", "middle", "last")
GONE = "records or aborted or duplicates or nothing"
AGAIN = "hidden records seen or nothing"
ID = "cluster id or nothing"
KNOWN = "refused or nothing"
UNKNOWN = "refused or settings unknown"
TABLE = [
    Row(".lock", r"\.lock"),
    Row(
        "meta.properties",
        r"meta\.properties",
        "cluster id",
        "cluster id",
        ID,
        ID,
        ID,
        ID,
        told=("missing", "empty", "cut"),
    ),
    Row("horolog-cluster", r"horolog-cluster", *[KNOWN] * 7),
    Row("horolog-journal", r"horolog-journal", *[REFUSED] * 3, NOTHING, UNKNOWN, *[REFUSED] * 2, told=KINDS),
    Row("horolog-checkpoint.<n>", r"horolog-checkpoint\.\d", *[AGAIN] * 7, told=CONTENT),
    Row("horolog-adopted", r"horolog-adopted", told=("cut", "head", "middle", "last")),
    Row("horolog-log-starts", r"horolog-log-starts", older=AGAIN, told=CONTENT),
    Row("log-start-offset-checkpoint", r"log-start-offset-checkpoint", told=KINDS),
    Row("recovery-point-offset-checkpoint", r"recovery-point-offset-checkpoint"),
    Row("replication-offset-checkpoint", r"replication-offset-checkpoint"),
    Row("cleaner-offset-checkpoint", r"cleaner-offset-checkpoint(\.\d)?"),
    Row(".kafka_cleanshutdown", r"\.kafka_cleanshutdown(\.\d)?"),
    Row(".log", r".*/\d{20}\.log", *[GONE] * 3, NOTHING, GONE, GONE, GONE, told=("cut", "head", "middle", "last")),
    Row(".index", r".*/\d{20}\.index"),
    Row(".timeindex", r".*/\d{20}\.timeindex"),
    Row(".txnindex", r".*/\d{20}\.txnindex", told=("missing", "empty", "cut", "head", "middle")),
    Row(".snapshot", r".*/\d{20}\.snapshot"),
    Row("horolog-producers", r".*/horolog-producers"),
    Row("horolog-seals", r".*/horolog-seals", told=CONTENT),
    Row("leader-epoch-checkpoint", r".*/leader-epoch-checkpoint"),
    Row("partition.metadata", r".*/partition\.metadata", told=("empty", "cut")),
]
KAFKAS = r"__cluster_metadata-0/.*"
"""The metadata of a Kafka is read, and never written."""
LIVES = [("alone", "a kill"), ("alone", "a clean stop"), ("workers", "a kill"), ("workers", "a clean stop")]


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Life]:
    made = {}
    for who, live in (("alone", life_of_one), ("workers", life_of_workers)):
        found = asyncio.run(live(tmp_path_factory.mktemp(who)))
        made |= {(who, end): life for end, life in found.items()}
    return made


def files_of(life: Life) -> list[str]:
    return sorted(str(one.relative_to(life.folder)) for one in life.folder.rglob("*") if one.is_file())


def chosen(life: Life, row: Row, who: str, end: str) -> list[str]:
    """Workers have the files of partitions as a broker alone has them. After a kill the first of several and the last, else the last."""
    found = [one for one in files_of(life) if re.fullmatch(row.pattern, one) and not one.startswith("__")]
    if who == "workers" and "/" in row.pattern:
        return []
    return sorted({found[0], found[-1]} if end == "a kill" else {found[-1]}) if found else []


def test_every_file_that_is_written_has_a_row(lives: dict[tuple[str, str], Life]) -> None:
    patterns = [row.pattern for row in TABLE] + [KAFKAS]
    names = {name for life in lives.values() for name in files_of(life)}
    assert [name for name in sorted(names) if not any(re.fullmatch(one, name) for one in patterns)] == []
    assert [one for one in patterns if not any(re.fullmatch(one, name) for name in names)] == []


@pytest.mark.parametrize(("who", "end"), LIVES)
def test_without_damage_nothing_is_lost(lives: dict[tuple[str, str], Life], who: str, end: str, tmp_path: Path) -> None:
    life = lives[who, end]
    found = asyncio.run(opened(shutil.copytree(life.folder, tmp_path / "data"), life.newest_producer))
    assert harm(life.state, found) == NOTHING


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("who", "end"), LIVES)
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.file)
def test_each_is_hurt_in_each_way(
    lives: dict[tuple[str, str], Life],
    row: Row,
    who: str,
    end: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    life = lives[who, end]
    for name in chosen(life, row, who, end):
        for kind in KINDS:
            hurt = hurt_by(life, name, kind)
            if hurt is NOT:
                continue
            folder = shutil.copytree(life.folder, tmp_path / "data")
            if hurt is None:
                (folder / name).unlink()
            else:
                (folder / name).write_bytes(hurt)
            caplog.clear()
            found = harm(life.state, asyncio.run(opened(folder, life.newest_producer)))
            assert set(found.split(", ")) <= row.allowed(kind), f"{name} {kind}: {found}"
            is_told = Path(name).name in caplog.text
            assert is_told or kind not in row.told, f"{name} {kind}: nobody is told"
            shutil.rmtree(folder)


def hurt_by(life: Life, name: str, kind: str) -> bytes | str | None:
    """The bytes that are there then; None where there is no file, and `NOT` where it would be as before."""
    data = (life.folder / name).read_bytes()
    if kind == "older":
        before = life.before / name
        return before.read_bytes() if before.exists() and before.read_bytes() != data else NOT
    if not data and kind != "missing":
        return NOT
    return DAMAGES[kind](data)


def test_the_table_of_the_page_is_this_one() -> None:
    page = (PROJECT / "docs" / "durability.md").read_text("utf-8")
    for row in TABLE:
        told = "any" if row.told == KINDS else ", ".join(row.told)
        cells = [f"`{row.file}`", *(getattr(row, kind) for kind in KINDS), told]
        assert f"| {' | '.join(cells)} |" in page, " | ".join(cells)
