"""``python -m mkdesc``: the same as the ``mkdesc`` command."""

from mkdesc.cli import main

if __name__ == "__main__":
    main()
