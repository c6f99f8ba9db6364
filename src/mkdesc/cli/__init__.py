"""The command line: parse, call the library, print.

May use: every other room.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Any

__all__ = ["main"]

#: Characters of an error message: it may quote what somebody put into a file.
LONGEST = 1000

_INTERRUPTED = "interrupted; nothing was written"


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # some consoles lack some characters
            stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        print(_INTERRUPTED, file=sys.stderr)
        sys.exit(130)


def _load() -> Any:
    """The application, with all that its command imports; Ctrl-C meanwhile ends it at once.

    As an error it could come out of the middle of any module that is being loaded.
    """

    def end(*_: object) -> None:
        os.write(2, f"{_INTERRUPTED}\n".encode())
        os._exit(130)

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, end)
    from mkdesc.cli.app import COMMANDS, make_app

    # For help, and where there is no such command, all are needed.
    app = make_app([name for name in sys.argv[1:2] if name in COMMANDS] or COMMANDS)
    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return app


def _run() -> int:
    """Run the command and return its exit code."""
    if sys.argv[1:] == ["--version"]:  # without loading every command
        from mkdesc._support.version import __version__

        print(f"mkdesc {__version__}")
        return 0
    if "" in sys.argv[1:]:  # as a path it would mean the folder one is in
        print("error: an argument is empty; is a variable of a script not set?", file=sys.stderr)
        return 2
    app = _load()
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # `timeout` and schedulers end work so
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    import warnings

    import typer

    from mkdesc._support.text import shorten

    usage_error: Any = typer.BadParameter.__mro__[1]  # not exported by name
    # Warnings are for people too: one line, without the place in the code.
    warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
    try:
        code = int(app(prog_name="mkdesc", standalone_mode=False) or 0)
        if code == 130:  # how typer says Ctrl-C
            raise KeyboardInterrupt
        return code
    except typer.Abort as abort:  # how older versions say it, and all of them the end of a file
        if not isinstance(abort.__cause__, EOFError):
            raise KeyboardInterrupt from None
        print("error: a file ended early", file=sys.stderr)
    except usage_error as error:
        message = error.format_message()
        if message.startswith("No such command"):
            there = ", ".join(error.ctx.command.list_commands(error.ctx))
            message = f"{message.rstrip('.')}; expected one of {there}"
        if type(error).__name__ == "NoArgsIsHelpError":
            print(message)
            return 2
        print(f"error: {message}", file=sys.stderr)
    except MemoryError:
        print("error: not enough memory", file=sys.stderr)
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {shorten(str(error), LONGEST)}", file=sys.stderr)
    return 2
