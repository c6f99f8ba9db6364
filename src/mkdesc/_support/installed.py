"""What is installed, for bug reports and for results that are kept."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from mkdesc._support.version import __version__

_PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "safetensors",
    "pillow",
    "poselib",
    "opencv-python",
    "opencv-python-headless",
    "opencv-contrib-python",
    "opencv-contrib-python-headless",
    "scikit-learn",
    "torch",
    "kornia",
)


def versions() -> dict[str, str | None]:
    """Versions of this package, of Python and of what they use; None: not installed.

    Examples
    --------
    >>> versions()["mkdesc"] == __version__
    True
    """
    found: dict[str, str | None] = {
        "mkdesc": __version__,
        "python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
    }
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found
