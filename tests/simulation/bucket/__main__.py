"""Runs the simulated company with many seeds: `python -m tests.simulation.bucket FIRST LAST [--log | --pipelines | --crashes | --starts]`; exits with 1 at the first broken promise.

With `--log` the brokers' logs are real: segments, shipping, merging, and opening from the store. With `--pipelines` there are idempotent
producers with five batches under way, too. With `--crashes` leaders of one partition are killed between any two requests, ten for each seed. With `--starts` most
brokers fail to start once they have registered, and withdraw.
"""

import argparse
import logging
import sys

from tests.simulation.bucket import crashes, pipelines
from tests.simulation.bucket.company_world import CompanyWorld
from tests.simulation.bucket.failing_starts import FailingStart
from tests.simulation.bucket.planted_log import outcome_of


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.bucket", description=__doc__.splitlines()[0])
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--log", action="store_true", help="brokers with real logs")
    parser.add_argument("--pipelines", action="store_true", help="real logs, and producers with five batches under way")
    parser.add_argument("--crashes", action="store_true", help="leaders that are killed between any two requests")
    parser.add_argument("--starts", action="store_true", help="brokers whose starts fail or end as they register")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    for seed in range(chosen.first, chosen.last):
        if chosen.crashes:
            broken = crashes.outcome_of(seed, 10)
        elif chosen.pipelines:
            broken = pipelines.outcome_of(seed)
        elif chosen.starts:
            broken = CompanyWorld(seed, process_class=FailingStart).run()
        else:
            broken = outcome_of(seed)[0] if chosen.log else CompanyWorld(seed).run()
        if broken:
            print(f"seed {seed}: {broken}")
            return 1
    print(f"seeds {chosen.first} to {chosen.last - 1}: every promise held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
