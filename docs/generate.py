"""Write what the documentation takes from the code, or check that it is current.

Some pages are made whole. In others a table stands between two marks, and only the table is made:

    <!-- made by make docs: kinds -->
    …
    <!-- end -->

All of them are then rendered for `/docs`, into a file that is not kept in git.

`python -m docs.generate` writes; `--check` changes nothing and ends with 1 when a page is stale.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from docs.pages import (
    architecture,
    capabilities,
    commands,
    envelope,
    eras,
    errors,
    events,
    http,
    kinds,
    limits,
    messages,
    metrics,
    naming,
    operations,
    requirements,
    rest,
    rooms,
    schema,
    security,
    settings,
    site,
    tools,
)

DOCS = Path(__file__).parent

PAGES: dict[str, Callable[[], str]] = {
    "reference/settings.md": settings.page,
    "reference/commands.md": commands.page,
    "reference/errors.md": errors.page,
    "reference/events.md": events.page,
    "reference/limits.md": limits.page,
    "reference/operations.md": operations.page,
    "reference/rest.md": rest.page,
    "reference/tools.md": tools.page,
    schema.PATH: schema.page,
}
"""The pages that are made whole, and the types of the web pages."""

BLOCKS: dict[str, Callable[[], str]] = {
    **architecture.BLOCKS,
    **capabilities.BLOCKS,
    **envelope.BLOCKS,
    **eras.BLOCKS,
    **http.BLOCKS,
    **kinds.BLOCKS,
    **messages.BLOCKS,
    **metrics.BLOCKS,
    **naming.BLOCKS,
    **requirements.BLOCKS,
    **rooms.BLOCKS,
    **security.BLOCKS,
}
"""The tables that stand between marks, each in exactly one page."""

MARKED = re.compile(r"(<!-- made by make docs: ([a-z-]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


class Misplaced(Exception):
    """A mark names no table, or a table is not in exactly one page."""


def made() -> dict[str, str]:
    """Every page that holds something made, by its name, as it should be."""
    pages = {name: page() for name, page in PAGES.items()}
    placed: list[str] = []
    for name, text in written():
        found = [match[2] for match in MARKED.finditer(text)]
        if found:
            placed += found
            pages[name] = MARKED.sub(filled, text)
    if sorted(placed) != sorted(BLOCKS):
        wrong = sorted({name for name in [*placed, *BLOCKS] if placed.count(name) != 1})
        raise Misplaced(f"not in exactly one page: {', '.join(wrong)}")
    return pages


def written() -> Iterator[tuple[str, str]]:
    """The pages that people write, by name."""
    for path in sorted(DOCS.rglob("*.md")):
        name = path.relative_to(DOCS).as_posix()
        if name not in PAGES:
            yield name, path.read_text(encoding="utf-8")


def filled(match: re.Match[str]) -> str:
    """The marks with their table between them."""
    if match[2] not in BLOCKS:
        raise Misplaced(f"there is no table {match[2]!r}")
    return f"{match[1]}\n{BLOCKS[match[2]]()}\n\n{match[3]}"


def stale() -> list[str]:
    """The names of the pages that differ from what the code says."""
    return [name for name, text in made().items() if current(DOCS / name) != text]


def current(path: Path) -> str | None:
    """What a page says now, if it exists."""
    return path.read_text(encoding="utf-8") if path.exists() else None


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` name those that are stale."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m docs.generate [--check]\n")
        return 2
    try:
        if arguments:
            old = stale()
            for name in old:
                sys.stderr.write(f"docs/{name} is not current; run 'make docs'\n")
            site.page(site.sources(DOCS.parent))
            return 1 if old else 0
        for name, text in made().items():
            (DOCS / name).write_text(text, encoding="utf-8")
        site.write(DOCS.parent)
    except (Misplaced, site.Unservable) as error:
        sys.stderr.write(f"docs: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
