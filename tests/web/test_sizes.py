"""What a browser loads first stays small."""

from __future__ import annotations

import gzip
from importlib.resources import files

import pytest


@pytest.mark.parametrize(("name", "most"), [("console", 200), ("web", 120), ("inbox", 150)])
def test_a_page_with_all_of_its_scripts_is_loaded_at_once_and_small(name, most):
    page = (files("folkmoot.web") / "built" / f"{name}.html").read_bytes()
    assert len(gzip.compress(page, 6)) <= most * 1000
