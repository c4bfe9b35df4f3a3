"""The soak for as long as one likes: `python -m tests.soak --minutes 120 [--seed N]`; exit code 1 if anything was wrong."""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.soak.soak import run

MOST_PROBLEMS_SHOWN = 50


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description="Real clients, and a broker that is killed."
    )
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # it tells of every connection that is refused
    folder = Path(tempfile.mkdtemp(prefix="horolog-soak-"))
    soak, vitals, problems = run(folder, chosen.minutes * 60, chosen.seed)
    for what, count in sorted(soak.counts.items()):
        print(f"{count:10}  {what}")
    for line in (*vitals.figures(), *problems[:MOST_PROBLEMS_SHOWN]):
        print(line)
    print(f"{len(problems)} problems; seed {chosen.seed}")
    if problems:
        print(f"the broker's folder is kept: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
