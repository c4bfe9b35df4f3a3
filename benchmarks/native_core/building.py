"""Compiles the core into a temporary folder, and imports it from there."""

import importlib.util
import os
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType

SOURCE = Path(__file__).with_name("core.c")
NAME = "native_core"
FLAGS = ("-O3", "-msse4.2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers")


def built() -> ModuleType:
    """The core as a module. Needs a C compiler and an x86_64 processor; raises CalledProcessError where either is missing."""
    with tempfile.TemporaryDirectory(prefix="horolog-native-core-") as folder:
        made = Path(folder) / f"{NAME}{sysconfig.get_config_var('EXT_SUFFIX')}"
        include = f"-I{sysconfig.get_path('include')}"
        compiler = os.environ.get("CC", "cc").split()
        subprocess.run([*compiler, *FLAGS, "-shared", "-fPIC", include, str(SOURCE), "-o", str(made)], check=True)
        spec = importlib.util.spec_from_file_location(NAME, made)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
