"""Which Python this is, and whether it was built with optimisations: on one that was, the same code takes a fifth less time.

    PYTHON tools/interpreter.py    # one line about it; an exit code if horolog does not run on it, or if it cannot make environments

The Makefile asks every Python that it finds.
"""

import importlib.util
import platform
import sys
import sysconfig

OLDEST = (3, 11)
OPTIMISED = ", optimised"


def is_optimised() -> bool:
    """Built with the profile of a run (PGO), by its own account; or by a distribution, which does so and does not always say so."""
    by_its_own_account = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    return by_its_own_account or sysconfig.get_config_var("prefix") == "/usr"


def said() -> str:
    """Version and build, as figures are labelled with them."""
    return f"Python {platform.python_version()}{OPTIMISED if is_optimised() else ', not optimised'}"


def main() -> int:
    # Debian has ensurepip in a package of its own.
    if sys.version_info < OLDEST or importlib.util.find_spec("ensurepip") is None:
        return 1
    sys.stdout.write(f"{sys.executable}: {said()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
