"""Fuzz one target for a while: `python -m tests.fuzz TARGET --seconds 60`, with atheris where it is installed, else with our own mutations.

Inputs that broke something are kept as `tests/fuzz/corpus/TARGET/crash-*`, where the default tests run them again for ever.
"""

import argparse
import random
import resource
import sys
from pathlib import Path

from tests.fuzz import corpus, mutation
from tests.fuzz.targets import TARGETS, load

MEMORY_BYTES = 2 << 30
"""Address space on top of what the process has when it begins: more means that some length was believed."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Feed damaged bytes to the parts that read bytes of others."
    )
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="repeat a run of our own mutations")
    parser.add_argument("--engine", choices=["auto", "atheris", "own"], default="auto")
    parser.add_argument("--keep-nothing", action="store_true", help="do not write findings into the corpus")
    arguments = parser.parse_args()
    bound_memory()
    if arguments.engine != "own" and has_atheris():
        return run_atheris(arguments.target, arguments.seconds, arguments.seed)
    if arguments.engine == "atheris":
        print("atheris is not installed", file=sys.stderr)
        return 2
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    return run_own(arguments.target, arguments.seconds, seed, keep_nothing=arguments.keep_nothing)


def has_atheris() -> bool:
    from importlib.util import find_spec

    return find_spec("atheris") is not None


def bound_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, hard))


def run_own(name: str, seconds: float, seed: int, *, keep_nothing: bool) -> int:
    print(f"{name}: our own mutations for {seconds:g} s, --seed {seed}", flush=True)
    report = mutation.run(load(name), corpus.load(name), seconds, seed)
    print(report.summary(name), flush=True)
    for finding in report.findings:
        kept = finding.data.hex() if keep_nothing else corpus.keep(name, finding.data)
        print(f"FOUND {finding.reason}\n  kept as {kept}\n{finding.traceback}", flush=True)
    return 1 if report.findings else 0


def run_atheris(name: str, seconds: float, seed: int | None) -> int:
    """Coverage-guided; new inputs go to a cache folder, so that the kept corpus stays small."""
    import atheris

    with atheris.instrument_imports(include=["horolog.protocol", "horolog.broker"]):
        target = load(name)
        target(b"")
    found = corpus.folder(name).parents[3] / ".cache" / "fuzz" / name
    found.mkdir(parents=True, exist_ok=True)
    flags = [
        f"-max_total_time={int(seconds)}",
        f"-max_len={mutation.MAX_INPUT_BYTES}",
        "-timeout=10",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
    ]
    if seed is not None:
        flags.append(f"-seed={seed}")
    flags += [f"-artifact_prefix={corpus.folder(name)}/", str(found), str(corpus.folder(name))]
    atheris.Setup([sys.argv[0], *flags], lambda data: mutation.check(target, data))
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
