"""The page about names is true."""

from __future__ import annotations

import re

from folkmoot.names import RESERVED_NAMES, RULES
from tests.docs.pages import pages
from tests.docs.test_examples import run_python

PAGE = "docs/names.md"


def test_the_python_of_the_page_prints_what_the_page_shows():
    page = pages()[PAGE]
    assert sum(block.language == "python" for block in page.blocks) == 9
    run_python(page)


def test_the_page_has_the_rules_and_the_reserved_names_as_the_code_has_them():
    text = pages()[PAGE].text
    assert dict(re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", text, re.MULTILINE)) == dict(RULES)
    listed = text.split("`RESERVED_NAMES`: ")[1].split(")")[0]
    assert re.findall(r"`([a-z]+)`", listed) == sorted(RESERVED_NAMES)
