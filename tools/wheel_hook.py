"""Hatch asks this while it builds a wheel: the hot path is compiled into it where a C compiler is there, and the wheel is one of this platform.

`HOROLOG_COMPILED=1` insists on it: what cannot be compiled ends the build. `HOROLOG_COMPILED=0` builds a wheel of pure Python. Without
either a build that cannot compile is one of pure Python, and says so.
"""

import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WANTED = "HOROLOG_COMPILED"


class CompiledModules(BuildHookInterface):
    """Puts the extension modules into the wheel, each beside its source."""

    def dependencies(self) -> list[str]:
        """mypyc, and the libraries whose types it looks at."""
        if not self._is_wanted():
            return []
        declared = tomllib.loads((Path(self.root) / "pyproject.toml").read_text())
        return [*declared["dependency-groups"]["compile"], *declared["project"]["dependencies"]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or not self._is_wanted():
            return
        self._folder = Path(tempfile.mkdtemp(prefix="horolog-wheel-"))
        try:
            self._compile(build_data)
        except (Exception, SystemExit) as error:  # mypyc ends the process
            if os.environ.get(WANTED):
                raise
            self.app.display_warning(
                f"horolog is built as plain Python, because its hot path could not be compiled: {error}"
            )

    def _compile(self, build_data: dict[str, Any]) -> None:
        compiled = self._tool()
        compiled.build(self._folder)
        made = compiled.extensions(self._folder)
        build_data["force_include"] |= {str(path): path.relative_to(self._folder).as_posix() for path in made}
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def _is_wanted(self) -> bool:
        wanted = os.environ.get(WANTED)
        return wanted != "0" if wanted else bool(self._tool().is_possible())

    def _tool(self) -> ModuleType:
        if self.root not in sys.path:
            sys.path.insert(0, self.root)
        from tools import compiled

        return compiled

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatch calls it
        if hasattr(self, "_folder"):
            shutil.rmtree(self._folder)
