"""Imported by the workers of ``local:N``: Ctrl-C is for the command, which then ends them."""

import signal

__all__: list[str] = []

signal.signal(signal.SIGINT, signal.SIG_IGN)
