"""The command line with all commands, for ``typer``, which writes its reference."""

from mkdesc.cli.app import make_app

app = make_app()
