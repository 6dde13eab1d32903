"""The documentation as the hub serves it under `/docs`: every page rendered, one line each.

The first line has the navigation. Links between pages are relative, those to pictures too; a link
to a file that is not served (an example, a source) becomes plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from posixpath import basename, dirname, join, normpath, relpath
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

PATH: Final = "src/folkmoot/web/built/docs.jsonl"
IMAGES: Final = "src/folkmoot/web/images/"
TOP: Final = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
BESIDE: Final = (*TOP, "benchmarks/README.md")
"""Pages beside `docs` that belong to the documentation."""
PROJECT: Final = (("Readme", "README.md"), ("Changes", "CHANGELOG.md"))
OUTSIDE: Final = ("http://", "https://", "mailto:")
NOT_IN_ANCHORS: Final = re.compile(r"[^\w\- ]")
COMMENT: Final = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)


class Unservable(Exception):
    """A page has something that is not shown under `/docs`."""


def sources(root: Path) -> dict[str, str]:
    """Everything that the hub shows as documentation, by its name within the project."""
    paths = [*(root / name for name in BESIDE), *(root / "docs").rglob("*.md")]
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def write(root: Path) -> None:
    """Make the file that the hub reads."""
    (root / PATH).write_text(page(sources(root)), encoding="utf-8")


def page(sources: Mapping[str, str]) -> str:
    """Every page, by its file's name within the project, as the file the hub reads."""
    site = Site(sources)
    lines: list[Any] = [site.navigation(), *(site.rendered(name) for name in sorted(sources))]
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def address(name: str) -> str:
    """Where a page is below `/docs`, without a slash at either end; the first is empty."""
    if name in TOP:
        return name.removesuffix(".md").lower()
    below = name.removeprefix("docs/").removesuffix(".md")
    return below.removesuffix("README").rstrip("/")


def _served(name: str) -> str:
    return join("/docs", address(name)).rstrip("/")


def _relative(target: str, here: str) -> str:
    """A link between two addresses, which never ends in a slash."""
    return normpath(join(relpath(dirname(target), dirname(here)), basename(target)))


def anchor(text: str) -> str:
    """The name a code host gives to a heading."""
    return NOT_IN_ANCHORS.sub("", text.lower()).replace(" ", "-")


class Site:
    """Renders pages that link to each other."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._reader = MarkdownIt("commonmark").enable("table")
        self._reader.renderer.rules |= {  # type: ignore[attr-defined]
            "fence": _code,
            "code_block": _code,
            "html_block": _markup,
            "html_inline": _markup,
            "table_open": lambda *_: '<div class="table" tabindex="0"><table>\n',
            "table_close": lambda *_: "</table></div>\n",
        }
        self._tokens = {name: self._reader.parse(text) for name, text in sources.items()}
        self._titles = {
            name: next(text for _, text in _headings(tokens))
            for name, tokens in self._tokens.items()
        }

    def rendered(self, name: str) -> dict[str, Any]:
        """One page: where it is, its title, its second headings and its text."""
        tokens = self._tokens[name]
        anchors: dict[str, int] = {}
        contents = []
        for heading, text in _headings(tokens):
            wanted = anchor(text)
            again = anchors[wanted] = anchors.get(wanted, -1) + 1
            found = f"{wanted}-{again}" if again else wanted
            heading.attrSet("id", found)
            if heading.tag == "h2":
                contents.append([found, text])
        for token in tokens:
            if style := token.attrs.pop("style", ""):
                # The policy of the pages forbids styles in attributes.
                token.attrSet("class", str(style).removeprefix("text-align:"))
            if token.children:
                self._lead(name, token.children)
        html = self._reader.renderer.render(tokens, self._reader.options, {})
        return {
            "path": address(name),
            "title": self._titles[name],
            "contents": contents,
            "html": html,
        }

    def navigation(self) -> list[Any]:
        """Groups of pages as the first page lists them, and the reference's as its own does."""
        groups: list[Any] = []
        for title, links in self._listed("docs/README.md"):
            found = [(text, name) for text, name in links if name.startswith("docs/")]
            if any(name == "docs/reference/README.md" for _, name in found):
                known = {name for _, name in found}
                listed = [name for _, links in self._listed("docs/reference/README.md")
                          for _, name in links if name not in known]  # fmt: skip
                found += [(self._titles[name], name) for name in dict.fromkeys(listed)]
            groups.append([title, [[text, address(name)] for text, name in found]])
        groups.append(["Project", [[text, address(name)] for text, name in PROJECT]])
        return [group for group in groups if group[0] and group[1]]

    def _listed(self, name: str) -> list[tuple[str, list[tuple[str, str]]]]:
        """The links of a page to others, under the second heading they stand below."""
        groups: list[tuple[str, list[tuple[str, str]]]] = [("", [])]
        tokens = self._tokens[name]
        for before, token in zip([None, *tokens], tokens, strict=False):
            if before is not None and before.type == "heading_open" and before.tag == "h2":
                groups.append((_text(token), []))
                continue
            children = token.children or []
            for at, child in enumerate(children):
                target = self._target(name, str(child.attrGet("href") or ""))[0]
                if child.type == "link_open" and target in self._tokens:
                    groups[-1][1].append((_text_until_close(children[at + 1 :]), target))
        return groups

    def _lead(self, name: str, children: list[Token]) -> None:
        """Make every link and picture lead where it does on the hub."""
        plain: list[bool] = []
        here = _served(name)
        for child in children:
            if child.type == "image":
                file, _ = self._target(name, str(child.attrGet("src")))
                if not file.startswith(IMAGES):
                    raise Unservable(f"{name}: the picture {file} is not in {IMAGES}")
                picture = join("/docs/images", file.removeprefix(IMAGES))
                child.attrSet("src", relpath(picture, dirname(here)))
                child.attrSet("loading", "lazy")
            elif child.type == "link_open":
                link = str(child.attrGet("href"))
                file, part = self._target(name, link)
                plain.append(not link.startswith(OUTSIDE) and file not in self._tokens)
                if plain[-1]:
                    child.type = "text"
                elif file in self._tokens:
                    to = "" if file == name else _relative(_served(file), here)
                    child.attrSet("href", f"{to}#{part}" if part else to)
                else:
                    child.attrSet("rel", "noreferrer")
            elif child.type == "link_close" and plain.pop():
                child.type = "text"

    def _target(self, name: str, link: str) -> tuple[str, str]:
        """The file that a link of a page names, within the project, and the part of it."""
        if link.startswith(OUTSIDE):
            return "", ""
        path, _, part = link.partition("#")
        return (normpath(join(dirname(name), path)) if path else name), part


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            yield before, _text(token)


def _text(token: Token) -> str:
    return "".join(child.content for child in token.children or ())


def _text_until_close(children: Sequence[Token]) -> str:
    closing = next(at for at, child in enumerate(children) if child.type == "link_close")
    return "".join(child.content for child in children[:closing])


def _code(tokens: Sequence[Token], at: int, *_: object) -> str:
    # Wide code scrolls, so the keyboard must reach it.
    text = escape(tokens[at].content.removesuffix("\n"), quote=False)
    return f'<div class="paste"><pre tabindex="0"><code>{text}</code></pre></div>\n'


def _markup(tokens: Sequence[Token], at: int, *_: object) -> str:
    """Nothing but line breaks in cells, and comments, which are for writers."""
    content = tokens[at].content
    if content != "<br>" and not COMMENT.fullmatch(content):
        raise Unservable(f"markup is not served: {content[:60]!r}")
    return content if content == "<br>" else ""
