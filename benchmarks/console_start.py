"""From the start of `horolog console` to its first page, and its memory then and after every page: checkouts beside each other, in turns.

    python -m benchmarks.console_start -b HOST:PORT --topic NAME [--runs 12] [FOLDER...]

Each FOLDER is a checkout (this one if none is named). A broker runs already and has the topic. The first start of each is not
counted: it compiles modules and templates. Processor time is steadier than the clock where the machine has other work.
"""

import argparse
import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

HERE = Path(__file__).resolve().parents[1]
NANOSECONDS = 1e9


class Start(NamedTuple):
    wall_s: float
    cpu_s: float
    first_mib: float
    all_mib: float


def start(folder: Path, bootstrap: str, topic: str, bytecode: str) -> Start:
    """One console, its first page, then all."""
    command = [sys.executable, "-m", "horolog", "console", "--listen", "127.0.0.1:0", "-b", bootstrap]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.monotonic()
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().rpartition(":")[2].strip().rstrip("/"))
            get(port, "/")
            wall_s = time.monotonic() - began
            of_process = Path(f"/proc/{process.pid}")
            cpu_s = int((of_process / "schedstat").read_text().split()[0]) / NANOSECONDS
            first_mib = resident_mib(of_process)
            name = quote(topic)
            for path in (
                f"/topic?name={name}",
                f"/moment?topic={name}&at=1m&within=9d",
                "/groups",
                f"/compare?a={name}&b={name}",
            ):
                get(port, path)
            return Start(wall_s, cpu_s, first_mib, resident_mib(of_process))
        finally:
            process.terminate()


def get(port: int, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status != http.client.OK:
        raise RuntimeError(f"{path}: {answer.status}")


def resident_mib(of_process: Path) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", (of_process / "status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[HERE])
    parser.add_argument("-b", "--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--runs", type=int, default=12)
    given = parser.parse_args()
    runs: dict[Path, list[Start]] = {folder: [] for folder in given.folders}
    with tempfile.TemporaryDirectory() as bytecode:
        for number in range(given.runs + 1):
            for place, folder in enumerate(given.folders):
                found = start(folder, given.bootstrap, given.topic, f"{bytecode}/{place}")
                if number:
                    runs[folder].append(found)
    for folder, starts in runs.items():
        columns = list(zip(*starts, strict=True))
        wall, cpu, first, every = map(statistics.median, columns)
        print(
            f"{folder}: first page {wall:.3f} s (least {min(columns[0]):.3f}), {cpu:.3f} s of CPU (least {min(columns[1]):.3f}),"
            f" {first:.1f} MiB then, {every:.1f} MiB after all pages"
        )


if __name__ == "__main__":
    main()
