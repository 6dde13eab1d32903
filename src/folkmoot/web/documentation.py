"""`/docs`: the documentation that ships with the hub, and a search in it.

The pages are rendered into `built/docs.jsonl` when the package is built. Only what is in that
file, and the pictures beside it, can be asked for: no path of a request ever names a file.
"""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import Iterable, Iterator
from html import escape, unescape
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from folkmoot.web.frame import FORMS_HERE, POLICY, PageFrame, fill, source
from folkmoot.web.limits import (
    MAX_EXCERPT,
    MAX_SEARCH_CHARACTERS,
    MAX_SEARCH_RESULTS,
    MAX_SEARCH_WORDS,
)

if TYPE_CHECKING:
    from starlette.requests import Request

HEADING: Final = re.compile(r'<h([1-3]) id="([^"]*)">(.*?)</h\1>', re.DOTALL)
TAG: Final = re.compile(r"<[^>]*>")
TYPES: Final = {".png": "image/png", ".svg": "image/svg+xml"}
PICTURE: Final = {
    "cache-control": "public, max-age=86400",
    POLICY: "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}
REFERENCE: Final = ("reference/", "architecture", "glossary", "contributing", "benchmarks")
"""What is listed after the guides that have as many of the words."""
PLACES: Final = (
    ("/", "Home"),
    ("/inbox", "Inbox"),
    ("/rooms", "Rooms"),
    ("/decisions", "Decisions"),
    ("/servers", "Servers"),
)
"""Where the navigation of the other pages leads everyone."""
OLDER: Final = ("decisions/", "changelog")
"""What is listed after both: it tells how things came to be, not how they are."""
COMMON: Final = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "how",
    "i", "in", "is", "it", "my", "of", "on", "one", "or", "our", "the", "this", "to", "what",
    "when", "where", "which", "who", "why", "with", "you", "your",
})  # fmt: skip
"""Words that are not looked for, unless a query has no others."""


class DocsPage(msgspec.Struct, frozen=True):
    """One rendered page."""

    path: str
    title: str
    contents: list[tuple[str, str]]
    html: str


class DocsSection(msgspec.Struct, frozen=True):
    """The text below one heading."""

    page: DocsPage
    anchor: str
    title: str
    text: str
    folded: str


Navigation = list[tuple[str, list[tuple[str, str]]]]


class Shelf:
    """All pages, read at the first request: most hubs are asked for none of them."""

    def __init__(self) -> None:
        first, *rest = source("built/docs.jsonl").splitlines()
        self.navigation: Navigation = msgspec.json.decode(first, type=Navigation)
        read = msgspec.json.Decoder(DocsPage).decode
        self.pages = {page.path: page for page in map(read, rest)}
        self._sections: list[DocsSection] | None = None

    def search(self, query: str) -> list[DocsSection]:
        """The sections that have any word of a query, best first."""
        words = query[:MAX_SEARCH_CHARACTERS].casefold().split()[:MAX_SEARCH_WORDS]
        words = [word for word in words if word not in COMMON] or words
        if not words:
            return []
        if self._sections is None:
            self._sections = [part for page in self.pages.values() for part in sections(page)]
        found = (each for each in self._sections if any(word in each.folded for word in words))
        return sorted(found, key=lambda each: rank(each, words))[:MAX_SEARCH_RESULTS]


def rank(section: DocsSection, words: list[str]) -> tuple[int, int, int, int]:
    """Where a section stands among results: by how many words it has, guides before the reference;
    words in headings count more than in the text.
    """
    headings, path = f"{section.title} {section.page.title}".casefold(), section.page.path
    counts = [section.folded.count(word) for word in words]
    kind = 2 if path.startswith(OLDER) else 1 if path.startswith(REFERENCE) else 0
    named = sum(word in headings for word in words)
    return -sum(map(bool, counts)), kind, -named, -sum(counts)


def sections(page: DocsPage) -> Iterator[DocsSection]:
    """A page by its headings."""
    headings = list(HEADING.finditer(page.html))
    ends = [*(heading.start() for heading in headings[1:]), len(page.html)]
    for heading, end in zip(headings, ends, strict=True):
        title, text = plain(heading[3]), plain(page.html[heading.end() : end])
        folded = f"{page.title} {title} {text}".casefold()
        yield DocsSection(page, heading[2], title, text, folded)


def plain(html: str) -> str:
    """The text of our own markup, in one line."""
    return " ".join(unescape(TAG.sub("", html)).split())


def excerpt(section: DocsSection, query: str) -> str:
    """The text of a section around the first word of a query that is in it."""
    folded = section.text.casefold()
    at = min((found for word in query.casefold().split() if (found := folded.find(word)) >= 0),
             default=0)  # fmt: skip
    start = max(0, at - MAX_EXCERPT // 3)
    end = start + MAX_EXCERPT
    text = section.text[start:end].strip()
    return f"{'… ' if start else ''}{text}{' …' if end < len(section.text) else ''}"


class Documentation:
    """Draws the pages of the documentation."""

    def __init__(self, base: str = "") -> None:
        self._base = f"{base}/docs"
        places = () if base else PLACES
        self._frame = PageFrame(
            "docs.css", base=base, images="'self' data:", forms=FORMS_HERE, places=places
        )
        self._body = source("docs.html")
        self._headers = {
            **self._frame.headers,
            "cache-control": "public, max-age=300",
            "vary": "accept-encoding",
        }
        folder = files("folkmoot.web").joinpath("images")
        self._pictures = {each.name: each for each in folder.iterdir()}
        self._reading: asyncio.Future[Shelf] | None = None
        self._drawn: dict[str, bytes] = {}

    def routes(self) -> list[Route]:
        return [
            Route("/docs", self.page),
            Route("/docs/search", self.search),
            Route("/docs/images/{name}", self.picture),
            Route("/docs/{path:path}", self.page),
        ]

    async def page(self, request: Request) -> Response:
        """One page; without a path, the first."""
        path: str = request.path_params.get("path", "")
        shelf = await self._shelf()
        if path not in shelf.pages or (not path and request.url.path != "/docs"):
            # As the file is called, and with a slash too many, it is found as well.
            name = path.removesuffix(".md").removesuffix("README").rstrip("/")
            if (name in shelf.pages and name != path) or not path:
                return RedirectResponse(f"{self._base}/{name}".rstrip("/"), 308)
            raise HTTPException(404)
        zipped = self._drawn.get(path)
        if zipped is None:
            zipped = await asyncio.to_thread(self._draw, shelf, shelf.pages[path])
            self._drawn[path] = zipped
        return self._answer(request, zipped)

    async def search(self, request: Request) -> Response:
        """The sections that have the words of `?q=`."""
        query = request.query_params.get("q", "")[:MAX_SEARCH_CHARACTERS].strip()
        shelf = await self._shelf()
        found = await asyncio.to_thread(shelf.search, query)
        html = await asyncio.to_thread(self._found, shelf, query, found)
        return HTMLResponse(html, 200, {**self._headers, "cache-control": "no-store"})

    async def picture(self, request: Request) -> Response:
        name: str = request.path_params["name"]
        if name not in self._pictures:
            raise HTTPException(404)
        body = await asyncio.to_thread(self._pictures[name].read_bytes)
        return Response(body, 200, PICTURE, TYPES[name[-4:]])

    async def _shelf(self) -> Shelf:
        if self._reading is None:
            self._reading = asyncio.ensure_future(asyncio.to_thread(Shelf))
        return await asyncio.shield(self._reading)

    def _answer(self, request: Request, zipped: bytes) -> Response:
        if "gzip" in request.headers.get("accept-encoding", ""):
            return HTMLResponse(zipped, 200, {**self._headers, "content-encoding": "gzip"})
        return HTMLResponse(gzip.decompress(zipped), 200, self._headers)

    def _draw(self, shelf: Shelf, page: DocsPage) -> bytes:
        title = "Documentation" if not page.path else f"{page.title} · Documentation"
        return gzip.compress(self._framed(shelf, title, page.html, page), mtime=0)

    def _found(self, shelf: Shelf, query: str, found: list[DocsSection]) -> bytes:
        row = '<li><a href="$where">$page</a><p>$text</p></li>'
        listed = "\n".join(
            fill(row, where=self._where(each), page=named(each), text=excerpt(each, query))
            for each in found
        )
        said = f"<p>{counted(len(found))}</p>" if query else "<p>Type a word to look for.</p>"
        html = f'<h1>Search</h1>{said}<ul class="found">{listed}</ul>'
        return self._framed(shelf, "Search · Documentation", html, None, query)

    def _where(self, section: DocsSection) -> str:
        return f"{self._base}/{section.page.path}".rstrip("/") + f"#{section.anchor}"

    def _framed(
        self, shelf: Shelf, title: str, html: str, page: DocsPage | None, query: str = ""
    ) -> bytes:
        navigation = "\n".join(listed(shelf.navigation, page, self._base))
        trusted = {"html": html, "navigation": navigation}
        body = fill(self._body, trusted=trusted, query=query, base=self._frame.base)
        return self._frame.drawn(f"{title} · Folkmoot", body)


def named(section: DocsSection) -> str:
    """A section with the page it is on."""
    if section.title == section.page.title:
        return section.title
    return f"{section.page.title}: {section.title}"


def counted(number: int) -> str:
    """How many sections were found."""
    if number == MAX_SEARCH_RESULTS:
        return f"The {MAX_SEARCH_RESULTS} best results:"
    return f"{number} result{'' if number == 1 else 's'}" if number else "Nothing found."


def listed(navigation: Navigation, page: DocsPage | None, base: str) -> Iterable[str]:
    """The navigation: groups of pages, with the headings of the open page."""
    yield entry(base, "", "Overview", page)
    for title, pages in navigation:
        entries = "\n".join(entry(base, path, name, page) for name, path in pages)
        yield f"<h2>{escape(title)}</h2>\n<ul>\n{entries}\n</ul>"


def entry(base: str, path: str, name: str, page: DocsPage | None) -> str:
    """One page in the navigation."""
    here = page is not None and page.path == path
    current = ' aria-current="page"' if here else ""
    where = escape(f"{base}/{path}".rstrip("/"))
    link = f'<a href="{where}"{current}>{escape(name)}</a>'
    if not path:
        return f'<p class="overview">{link}</p>'
    inner = ""
    if page is not None and here and len(page.contents) > 1:
        parts = (f'<li><a href="#{it}">{escape(text)}</a></li>' for it, text in page.contents)
        inner = f"<ul>{''.join(parts)}</ul>"
    return f"<li>{link}{inner}</li>"
