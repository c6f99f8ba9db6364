"""Puts compiled loops into the wheel, so that nothing is compiled when it is first used.

They are compiled for the levels of x86-64 that the building machine has. Where that fails, or on
other processors, the wheel has none and suits every system, and first use compiles.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEVELS = "from mkdesc._support.machine_code import levels; print(*levels())"
COMPILE = "from mkdesc.cli.compile import compile_for; compile_for()"


class CompiledLoops(BuildHookInterface):
    """Compiles in child processes, one for each level, at the same time."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add the files to the wheel: hatchling calls it before it builds."""
        if version == "editable":
            return
        self.folder = tempfile.mkdtemp(prefix="mkdesc-loops-")
        asked = self._start(LEVELS)
        levels = (asked.communicate()[0] or "").split()
        children = [
            self._start(
                COMPILE,
                NUMBA_CPU_NAME=level,
                NUMBA_CPU_FEATURES="",
                NUMBA_CACHE_DIR=self.folder,
            )
            for level in levels
        ]
        failed = [child.returncode for child in children if child.communicate() and child.wait()]
        if failed or not any(Path(self.folder).iterdir()):
            self.app.display_warning("no loops were compiled ahead: first use will compile them")
            return
        system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{system}"
        build_data["pure_python"] = False
        build_data["force_include"][self.folder] = "mkdesc/_compiled"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Clean up: hatchling calls it after it has built."""
        if version != "editable":
            shutil.rmtree(self.folder)

    def _start(self, code: str, **told: str) -> subprocess.Popen[str]:
        """Run code with the package of this tree, in a way that always gives the same files."""
        usual = {name: text for name, text in os.environ.items() if not name.startswith("NUMBA_")}
        before = usual.get("PYTHONPATH", "")
        told["PYTHONPATH"] = os.pathsep.join([str(Path(self.root, "src")), before])
        told["PYTHONHASHSEED"] = "0"
        return subprocess.Popen(
            [sys.executable, "-c", code], env=usual | told, stdout=subprocess.PIPE, text=True
        )
