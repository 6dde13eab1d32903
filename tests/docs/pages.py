"""The pages of the documentation as the tests read them: links, anchors, code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

READER = MarkdownIt("commonmark").enable("table")
NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of code, and where it begins."""

    language: str
    text: str
    line: int


class Page:
    """One page."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.relative_to(ROOT).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self._tokens = READER.parse(self.text)

    @property
    def blocks(self) -> list[Block]:
        """The blocks of code, in order."""
        return [
            Block(token.info, token.content, token.map[0] + 1)
            for token in self._tokens
            if token.type == "fence" and token.map
        ]

    @property
    def code(self) -> list[str]:
        """The code within lines."""
        return [token.content for token in self._inline() if token.type == "code_inline"]

    @property
    def links(self) -> list[str]:
        """Where links lead and images come from."""
        found = [token.attrGet("href") or token.attrGet("src") for token in self._inline()]
        return [str(link) for link in found if link]

    @property
    def anchors(self) -> set[str]:
        """The headings, as a link names them."""
        after = zip(self._tokens, self._tokens[1:], strict=False)
        headings = [token for before, token in after if before.type == "heading_open"]
        return {anchor(heading) for heading in headings}

    def _inline(self) -> list[Token]:
        return [child for token in self._tokens for child in token.children or ()]


def anchor(heading: Token) -> str:
    """The name a code host gives to a heading."""
    text = "".join(child.content for child in heading.children or ())
    return NOT_IN_ANCHORS.sub("", text.lower()).replace(" ", "-")


@cache
def pages() -> dict[str, Page]:
    """Every page by its name: those at the top of the project and those in `docs`."""
    paths = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    return {page.name: page for page in map(Page, sorted(paths))}
