"""The command line: parse, call the library, print.

May use: every other room.
"""

from __future__ import annotations

import io
import sys
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # some consoles lack some characters
            stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        print("interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)


def _run() -> int:
    """Run the command and return its exit code."""
    import warnings

    import typer

    from mkdesc.cli.app import app

    usage_error: Any = typer.BadParameter.__mro__[1]  # not exported by name
    # Warnings are for people too: one line, without the place in the code.
    warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
    try:
        code = int(app(standalone_mode=False) or 0)
        if code == 130:  # how typer says Ctrl-C
            raise KeyboardInterrupt
        return code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except usage_error as error:
        message = error.format_message()
        if type(error).__name__ == "NoArgsIsHelpError":
            print(message)
            return 2
        print(f"error: {message}", file=sys.stderr)
    except MemoryError:
        print("error: not enough memory", file=sys.stderr)
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
    return 2
