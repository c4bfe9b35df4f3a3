"""Whatever is done to the files of a data folder: dump reports it, doctor repairs it, and no good record is lost."""

import io
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from horolog.broker.log.integrity import Batch, scan
from horolog.broker.log.storage import ReadOnlyStorage
from horolog.client.cli.dumping.files import Question, dump_file
from horolog.client.cli.dumping.items import text_line
from horolog.client.cli.dumping.kinds import kind_of
from horolog.client.cli.main import main
from horolog.commands.console import Console
from horolog.protocol.records.entries import iter_records
from tests.support import golden

CASES = ("v2-multiseg", "v2-txn-multiseg", "v1-gzip-ct", "v2-zstd-ct", "v0-none-ct")
NOT_TIMED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=40)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return golden.unpacked(tmp_path_factory)


def wounds():
    """Ways to damage a file: where (a share of its size), and what."""
    place = st.floats(0, 1, exclude_max=True)
    return st.one_of(
        st.tuples(st.just("flip"), place, st.integers(0, 7)),
        st.tuples(st.just("cut"), place, st.none()),
        st.tuples(st.just("overwrite"), place, st.binary(min_size=1, max_size=200)),
        st.tuples(st.just("insert"), place, st.binary(min_size=1, max_size=50)),
        st.tuples(st.just("append"), place, st.binary(min_size=1, max_size=300)),
    )


def losses():
    """The same, and the loss of a whole file."""
    return st.one_of(wounds(), st.just(("remove", 0.0, None)))


def wound(path: Path, kind: str, share: float, what) -> None:
    if kind == "remove" or not path.exists():
        path.unlink(missing_ok=True)
        return
    data = bytearray(path.read_bytes())
    at = int(len(data) * share)
    if kind == "flip" and data:
        data[at] ^= 1 << what
    elif kind == "cut":
        del data[at:]
    elif kind == "overwrite":
        data[at : at + len(what)] = what
    elif kind == "insert":
        data[at:at] = what
    elif kind == "append":
        data += what
    path.write_bytes(data)


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and kind_of(path.name) is not None)


@NOT_TIMED
@given(case=st.sampled_from(CASES), which=st.integers(0, 1000), one=wounds())
def test_dump_shows_any_file_or_says_what_is_wrong(root, tmp_path, case, which, one):
    folder = tmp_path / "topic-0"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / case / "clean", folder)
    path = files_in(folder)[which % len(files_in(folder))]
    wound(path, *one)
    for item in dump_file(str(path), Question(deep=True, with_data=True)):
        json.dumps(item)
        assert text_line(item, str).isprintable()


def readable(folder: Path) -> set[tuple[int, bytes | None, int]]:
    """Offset, value and time of every record in good batches, by a scan that trusts no index and no seal."""
    found = set()
    logs = sorted(folder.glob("*.log"))
    for path, following in zip(logs, [*logs[1:], None][: len(logs)], strict=True):
        end = 2**62 if following is None else int(following.stem)
        file = ReadOnlyStorage().open(str(path))
        for span in scan(file.pread, path.stat().st_size, first_offset=int(path.stem), end_offset=end):
            if isinstance(span, Batch):
                found |= {(record.offset, record.value, record.timestamp) for record in iter_records(span.data)}
        file.close()
    return found


def run(*words) -> tuple[int, dict]:
    console = Console(io.StringIO(), io.StringIO(), io.StringIO(), {})
    code = main(["doctor", *map(str, words), "-o", "json"], console)
    return code, json.loads(console.out.getvalue())


@NOT_TIMED
# The offset of a set, which no checksum covers:
@example(case="v1-gzip-ct", wounded=[(1, ("flip", 0.99, 7))], clean=False)
# The only log:
@example(case="v1-gzip-ct", wounded=[(1, ("remove", 0.0, None))], clean=True)
@given(
    case=st.sampled_from(CASES),
    wounded=st.lists(st.tuples(st.integers(0, 1000), losses()), min_size=1, max_size=3),
    clean=st.booleans(),
)
def test_doctor_repairs_what_it_finds_and_loses_no_good_record(root, tmp_path, case, wounded, clean):
    data = tmp_path / "data"
    shutil.rmtree(data, ignore_errors=True)
    folder = golden.Case(case, root).copy("clean", data)
    if not clean:
        (data / ".kafka_cleanshutdown").unlink(missing_ok=True)
    files = files_in(folder)
    written = readable(folder)
    for which, one in wounded:
        wound(files[which % len(files)], *one)
    good = readable(folder) & written
    code, _ = run(data)
    assert code in {0, 3}
    code, _ = run(data, "--repair")
    assert code == 0
    assert readable(folder) >= good
    code, document = run(data)
    assert (code, document["summary"]["damaged"]) == (0, 0)
