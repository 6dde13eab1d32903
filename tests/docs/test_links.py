"""Links between the pages lead somewhere, and every page can be found."""

from __future__ import annotations

from pathlib import PurePosixPath
from posixpath import normpath

import pytest

from tests.docs.pages import ROOT, Page, pages

OUTSIDE = ("http://", "https://", "mailto:")


def inside(page: Page) -> list[tuple[str, str]]:
    """The links of a page within the project: the file's name and the anchor."""
    found = []
    for link in page.links:
        if not link.startswith(OUTSIDE):
            path, _, anchor = link.partition("#")
            file = normpath(PurePosixPath(page.name).parent / path) if path else page.name
            found.append((file, anchor))
    return found


@pytest.mark.parametrize("name", pages())
def test_every_link_within_the_project_leads_to_a_file_and_a_heading(name):
    for file, anchor in inside(pages()[name]):
        assert (ROOT / file).is_file(), f"{name} links to {file}, which is not there"
        if anchor:
            assert anchor in pages()[file].anchors, f"{file} has no heading #{anchor}"


def test_every_page_is_reached_from_the_first():
    reached = {"README.md"}
    waiting = ["README.md"]
    while waiting:
        for file, _ in inside(pages()[waiting.pop()]):
            if file in pages() and file not in reached:
                reached.add(file)
                waiting.append(file)
    assert reached == set(pages())
