"""Three brokers over a real S3 server under faults: `python -m tests.chaos --minutes 15 [--seed N]`; exit code 1 if anything was wrong."""

from __future__ import annotations

import argparse
import faulthandler
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.chaos.run import run

MOST_PROBLEMS_SHOWN = 50
ENDS_WITHIN_S = 60.0
"""A process that does not end by itself, as once after a run without problems, shows where its threads are, and ends with code 1."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    chosen = parser.parse_args()
    print(f"--seed {chosen.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="horolog-chaos-"))
    report = run(folder, chosen.minutes * 60, chosen.seed)
    for what, count in sorted(report.counts.items()):
        print(f"{count:10}  {what}")
    print(", ".join(f"{count} x {kind}" for kind, count in Counter(one.kind for one in report.events).items()))
    print(*report.problems[:MOST_PROBLEMS_SHOWN], sep="\n")
    print(f"{len(report.problems)} problems; --seed {chosen.seed}", flush=True)
    faulthandler.dump_traceback_later(ENDS_WITHIN_S, exit=True)
    if report.problems:
        print(f"folders and logs of the brokers are kept: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
