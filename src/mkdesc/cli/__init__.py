"""The command line: parse, call the library, print."""

from __future__ import annotations

from mkdesc.cli.app import main

__all__ = ["main"]
