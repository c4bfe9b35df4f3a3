"""The soak for as long as one likes: `python -m tests.soak --minutes 120 [--seed N]`; exit code 1 if anything was wrong."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.soak.soak import run


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description="Real clients, and a broker that is killed."
    )
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="horolog-soak-") as folder:
        soak, problems = run(Path(folder), chosen.minutes * 60, chosen.seed)
    for what, count in sorted(soak.counts.items()):
        print(f"{count:10}  {what}")
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems; seed {chosen.seed}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
