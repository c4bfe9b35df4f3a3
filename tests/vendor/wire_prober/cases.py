"""Every case of the prober, in the order in which it runs them."""

import importlib

from tests.vendor.wire_prober.core import CASES

MODULES = ("v", "a", "b", "b1", "b2", "b3", "c", "d", "e", "f", "f2", "r")

for _name in MODULES:
    importlib.import_module(f"tests.vendor.wire_prober.cases_{_name}")

__all__ = ["CASES", "MODULES"]
