"""Check a built site: links inside it lead somewhere, and nothing is fetched from elsewhere.

``python tools/check_site.py FOLDER`` prints what is wrong and exits with 1 if anything is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Where elements name what a page loads by itself.
LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class _Page(HTMLParser):
    """The names, links and loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value}
        self.names |= {found[name] for name in ("id", "name") if name in found}
        if tag in LOADED and LOADED[tag] in found:
            self.loaded.add(found[LOADED[tag]])
        elif tag == "a" and "href" in found:
            self.links.add(found["href"])


def html(site: Path) -> list[Path]:
    """The pages; a theme's templates are none."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]


def faults(site: Path) -> Iterator[str]:
    """What is wrong, a line each."""
    pages = {path.resolve(): _Page(path) for path in html(site)}
    for path, page in pages.items():
        here = path.relative_to(site.resolve())
        for target in sorted(page.loaded | page.links):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loaded and parts.scheme != "data":
                    yield f"{here}: loads {target} from elsewhere"
                continue
            wanted = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not wanted.is_file():
                yield f"{here}: no file {target}"
            elif (
                parts.fragment
                and wanted in pages
                and unquote(parts.fragment) not in pages[wanted].names
            ):
                yield f"{here}: no place {target}"


def main() -> int:
    """Print the faults; the exit code."""
    site = Path(sys.argv[1])
    found = list(faults(site))
    for fault in found:
        print(fault)
    print(f"{site}: {len(html(site))} pages, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
