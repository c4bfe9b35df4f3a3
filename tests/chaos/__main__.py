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

from tests.chaos.brokers import NODES
from tests.chaos.plan import kills
from tests.chaos.run import run

MOST_PROBLEMS_SHOWN = 50
ENDS_WITHIN_S = 60.0
"""A process that does not end by itself, as once after a run without problems, shows where its threads are, and ends with code 1."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--soak", action="store_true", help="only a kill a minute, and what brokers and bucket take")
    chosen = parser.parse_args()
    seconds = chosen.minutes * 60
    print(f"--seed {chosen.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="horolog-chaos-"))
    events = kills(chosen.seed, seconds, NODES) if chosen.soak else None
    report = run(folder, seconds, chosen.seed, events)
    for what, count in sorted(report.counts.items()):
        print(f"{count:10}  {what}")
    print(", ".join(f"{count} x {kind}" for kind, count in Counter(one.kind for one in report.events).items()))
    print(*report.problems[:MOST_PROBLEMS_SHOWN], sep="\n")
    print(f"{len(report.problems)} problems; --seed {chosen.seed}", flush=True)
    if report.problems:
        print(f"folders and logs of the brokers are kept: {folder}")
    else:
        shutil.rmtree(folder)
    faulthandler.dump_traceback_later(ENDS_WITHIN_S, exit=True)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
