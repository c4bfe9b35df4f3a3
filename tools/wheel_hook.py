"""Hatch asks this while it builds a wheel: with HOROLOG_COMPILED=1 the hot path is compiled into it, and the wheel is one of this platform.

Otherwise the wheel is pure Python, and building it needs no compiler.
"""

import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WANTED = "HOROLOG_COMPILED"


class CompiledModules(BuildHookInterface):
    """Puts the extension modules into the wheel, each beside its source."""

    def dependencies(self) -> list[str]:
        """mypyc, and the libraries whose types it looks at."""
        if not _is_wanted():
            return []
        declared = tomllib.loads((Path(self.root) / "pyproject.toml").read_text())
        return [*declared["dependency-groups"]["compile"], *declared["project"]["dependencies"]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or not _is_wanted():
            return
        sys.path.insert(0, self.root)
        from tools import compiled

        self._folder = Path(tempfile.mkdtemp(prefix="horolog-wheel-"))
        compiled.build(self._folder)
        made = compiled.extensions(self._folder)
        build_data["force_include"] |= {str(path): path.relative_to(self._folder).as_posix() for path in made}
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatch calls it
        if hasattr(self, "_folder"):
            shutil.rmtree(self._folder)


def _is_wanted() -> bool:
    return os.environ.get(WANTED, "0") != "0"
