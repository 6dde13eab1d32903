"""The pages of the documentation as the tests read them: links, anchors, code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
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
    """One page; of its tokens, which take much memory, only what tests ask for is kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.relative_to(ROOT).as_posix()
        self.text = path.read_text(encoding="utf-8")
        tokens = READER.parse(self.text)
        inline = [child for token in tokens for child in token.children or ()]
        # The blocks of code, in order.
        self.blocks = [
            Block(token.info, token.content, token.map[0] + 1)
            for token in tokens
            if token.type == "fence" and token.map
        ]
        # The code within lines.
        self.code = [token.content for token in inline if token.type == "code_inline"]
        found = [token.attrGet("href") or token.attrGet("src") for token in inline]
        # Where links lead and images come from.
        self.links = [str(link) for link in found if link]
        # The headings, as a link names them.
        self.anchors = {
            anchor(token) for before, token in pairwise(tokens) if before.type == "heading_open"
        }


def anchor(heading: Token) -> str:
    """The name a code host gives to a heading."""
    text = "".join(child.content for child in heading.children or ())
    return NOT_IN_ANCHORS.sub("", text.lower()).replace(" ", "-")


@cache
def pages() -> dict[str, Page]:
    """Every page by its name: those at the top of the project, in `docs` and beside benchmarks."""
    paths = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), ROOT / "benchmarks/README.md"]
    return {page.name: page for page in map(Page, sorted(paths))}
