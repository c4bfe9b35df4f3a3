"""The floor: a C server that does the least that a load demands. Its figures show how far a broker is from the limit of the machine.

It serves the loads of plain batches on one partition, and nothing else. `floor.c` says what it does and what it leaves out.
"""

import os
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks import peer, process

SOURCE = Path(__file__).with_name("floor.c")
FLAGS = ("-O3", "-msse4.2", "-Wall", "-Wextra", "-Werror")
MODES = ("raw", "smallreq", "consume")
LEFT_OUT = ("--codec", "--acks", "--partitions")
LOOKUP, LOOKED_UP_BATCH_BYTES = "timelookup", "16384"
"""It reads a batch for each look-up, so a broker that remembers where a large one has its times does less."""
READY_TIMEOUT_SECONDS = 10.0


def drives(arguments: tuple[str, ...]) -> bool:
    """Whether the floor can serve this load."""
    if arguments[0] == LOOKUP:
        return LOOKED_UP_BATCH_BYTES in arguments and "--topic" not in arguments
    return arguments[0] in MODES and not any(one in arguments for one in LEFT_OUT)


def built(folder: Path) -> Path:
    """The program, compiled into a folder. Needs a C compiler and an x86_64 processor."""
    program = folder / "floor"
    subprocess.run([*os.environ.get("CC", "cc").split(), *FLAGS, str(SOURCE), "-o", str(program)], check=True)
    return program


def start(data: Path, port: int = 0) -> tuple[str, float, subprocess.Popen[bytes]]:
    """Its address, the seconds until it was ready, and its process."""
    data.mkdir(parents=True, exist_ok=True)
    port = port or process.free_range(1)
    address = f"127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="horolog-floor-") as folder:
        program = built(Path(folder))
        began = time.monotonic()
        started = subprocess.Popen([str(program), str(port), str(data)], stdin=subprocess.DEVNULL)
        try:
            process.wait_until(lambda: peer.is_ready(address), started.pid, READY_TIMEOUT_SECONDS, str)
        except BaseException:
            process.end(started.pid, started)
            raise
    return address, time.monotonic() - began, started
