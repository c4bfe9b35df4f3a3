"""Finds the worker processes of a broker, and waits for what becomes of them."""

from pathlib import Path

from tests.support.broker_process import BrokerProcess


def is_running(pid: int) -> bool:
    """Whether it runs still: one that is ending has no memory any more, and lets go of its files and locks only after that."""
    try:
        return Path(f"/proc/{pid}/statm").read_text().split()[0] != "0"
    except (FileNotFoundError, ProcessLookupError):
        return False


def workers_of(broker: BrokerProcess) -> dict[int, int]:
    """The workers' process ids, by worker number."""
    children = Path(f"/proc/{broker.pid}/task/{broker.pid}/children").read_text().split()
    found = {}
    for child in children:
        try:
            words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        except FileNotFoundError:  # it has ended meanwhile
            continue
        if b"horolog.broker.workers.worker" in words:
            found[int(words[words.index(b"horolog.broker.workers.worker") + 1])] = int(child)
    return found


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20
