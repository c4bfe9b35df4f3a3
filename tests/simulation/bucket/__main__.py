"""Runs the simulated company with many seeds: `python -m tests.simulation.bucket FIRST LAST`; exits with 1 at the first broken promise."""

import logging
import sys

from tests.simulation.bucket.company_world import CompanyWorld


def main(first, last):
    logging.disable(logging.CRITICAL)
    for seed in range(first, last):
        broken = CompanyWorld(seed).run()
        if broken:
            print(f"seed {seed}: {broken}")
            return 1
    print(f"seeds {first} to {last - 1}: every promise held")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
