"""`/docs`: every page is there, links lead somewhere, and no path reads anything else."""

from __future__ import annotations

import gzip
import re
from html import unescape
from importlib.resources import files
from posixpath import dirname, join, normpath

import pytest

from folkmoot.web.documentation import Documentation, Shelf, sections
from tests.docs.pages import ROOT
from tests.harness import Answer, ask, run, serving

SHELF = Shelf()
LINK = re.compile(r'<a href="([^"]*)"')
PICTURE = re.compile(r'<img src="([^"]*)"')


def get(*paths: str, **headers: str) -> list[Answer]:
    async def main() -> list[Answer]:
        async with serving() as hub:
            return [await ask(hub.port, path, headers=headers) for path in paths]

    return run(main())


def address(path: str) -> str:
    return f"/docs/{path}".rstrip("/")


@pytest.mark.requirement("docs.pages")
def test_every_markdown_page_of_the_project_is_served():
    below = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    expected = {name.removesuffix(".md").removesuffix("README").rstrip("/") for name in below}
    assert SHELF.pages.keys() == expected | {"readme", "changelog", "contributing", "benchmarks"}


@pytest.mark.requirement("docs.links")
def test_every_link_of_every_page_leads_to_a_page_and_a_heading_of_it():
    pages = {address(path): page for path, page in SHELF.pages.items()}
    anchors = {where: set(re.findall(r' id="([^"]*)"', page.html)) for where, page in pages.items()}
    pictures = {path.name for path in files("folkmoot.web").joinpath("images").iterdir()}
    shown: set[str] = set()
    for where, page in pages.items():
        for link in map(unescape, LINK.findall(page.html)):
            if re.match(r"https?:|mailto:", link):
                continue
            path, _, part = link.partition("#")
            target = normpath(join(dirname(where), path)) if path else where
            assert target in pages, f"{where} links to {link}"
            assert not part or part in anchors[target], f"{where} links to {link}"
        for source in PICTURE.findall(page.html):
            folder, name = normpath(join(dirname(where), source)).rsplit("/", 1)
            assert (folder, name in pictures) == ("/docs/images", True), f"{where} shows {source}"
        shown |= {source.rpartition("/")[2] for source in PICTURE.findall(page.html)}
    assert shown == pictures
    for _, listed in SHELF.navigation:
        assert all(path in SHELF.pages for _, path in listed)


def test_no_page_has_markup_that_runs_or_loads_something():
    for page in SHELF.pages.values():
        tags = set(re.findall(r"<([a-z0-9]+)[ />]", page.html))
        assert not tags & {"script", "style", "iframe", "object", "form", "input", "svg", "link"}
        assert not re.search(r"<[^>]*\s(on\w+|style|srcset)=", page.html), page.path
        assert '"javascript:' not in page.html


@pytest.mark.requirement("docs.pages")
def test_a_page_is_read_plain_and_compressed_under_a_strict_policy():
    plain = get("/docs/tutorials/person")[0]
    zipped = get("/docs/tutorials/person", **{"accept-encoding": "gzip"})[0]
    assert gzip.decompress(zipped.body) == plain.body
    assert 'aria-current="page">For people</a>' in plain.text
    policy = plain.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "img-src 'self' data:" in policy
    assert "unsafe" not in policy


def test_a_page_is_found_as_its_file_is_called():
    given = ("/docs/", "/docs/tutorials/person.md", "/docs/reference/README.md", "/docs/README.md")
    answers = get(*given, "/docs/reference/")
    assert {answer.status for answer in answers} == {308}
    assert [answer.headers["location"] for answer in answers] == [
        "/docs", "/docs/tutorials/person", "/docs/reference", "/docs", "/docs/reference",
    ]  # fmt: skip


TRICKS = """
/docs/../pyproject.toml /docs/%2e%2e/%2e%2e/pyproject.toml /docs/..%2f..%2fpyproject.toml
/docs/images/..%2fpages.py /docs/images/%2e%2e%2fpages.py /docs/images/../pages.py /docs/images/
/docs/images /docs//etc/passwd /docs/%2fetc%2fpasswd /docs/images/%00.png /docs/built/docs.jsonl
/docs/tutorials /docs/none.md /icons/..%2fpages.py /icons/none.png
"""


@pytest.mark.requirement("docs.nothing-else")
def test_no_path_reads_anything_else():
    tricks = TRICKS.split()
    for path, answer in zip(tricks, get(*tricks), strict=True):
        assert answer.status == 404, path
        assert b"import annotations" not in answer.body
        assert b"[project]" not in answer.body


def test_pictures_are_pictures_and_nothing_more():
    paths = list(files("folkmoot.web").joinpath("images").iterdir())
    for path, answer in zip(paths, get(*(f"/docs/images/{it.name}" for it in paths)), strict=True):
        assert answer.body == path.read_bytes()
        assert answer.headers["content-type"] in ("image/png", "image/svg+xml")
        assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.requirement("docs.search")
def test_the_search_finds_the_section_that_is_about_it():
    search = "/docs/search"
    answer, nothing, empty = get(f"{search}?q=master+key", f"{search}?q=xyzzyplugh", search)
    first = re.search(r'<ul class="found"><li><a href="([^"]*)">([^<]*)<', answer.text)
    assert first[1].startswith("/docs/operations/master-key#")
    [some] = get(f"{search}?q=how+do+I+rotate+the+xyzzyplugh")
    assert "master-key" in some.text
    assert answer.headers["cache-control"] == "no-store"
    assert "Nothing found." in nothing.text
    assert "Type a word" in empty.text


def test_what_is_looked_for_stays_text_and_is_bounded():
    answer = get("/docs/search?q=%3Cscript%3E%22" + "x" * 900)[0]
    assert answer.status == 200
    assert "<script>&" not in answer.text
    assert 'value="&lt;script&gt;&quot;' in answer.text
    assert answer.text.count("x" * 101) == 0


def test_headings_come_before_text_and_what_is_over_comes_last():
    found = SHELF.search("browser sessions")
    assert found[0].title == "Browser sessions"
    whole = SHELF.search("backup")
    past = [each.page.path.startswith(("decisions/", "changelog")) for each in whole]
    reference = [each.page.path.startswith("reference/") for each in whole]
    assert past == sorted(past)
    assert reference[: past.count(False)] == sorted(reference[: past.count(False)])
    assert not reference[0]
    assert SHELF.search("   ") == []
    person = SHELF.pages["tutorials/person"]
    assert next(sections(person)).title == person.title


def test_below_a_path_of_a_proxy_links_have_it():
    pages = Documentation("/moot")
    html = pages._draw(SHELF, SHELF.pages["tutorials/person"])
    text = gzip.decompress(html).decode()
    assert 'href="/moot/docs/operations/backup"' in text
    assert 'action="/moot/docs/search"' in text
    assert not re.search(r'(href|action|src)="/(?!moot/)', text)
