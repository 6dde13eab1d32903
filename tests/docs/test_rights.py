"""The page about rights: its settings are read, and its patterns open what it says."""

from __future__ import annotations

import re

import pytest

from folkmoot.core.capability import capability
from folkmoot.core.kinds import parse
from folkmoot.core.limits import MAX_CAPABILITIES
from folkmoot.gateway.configured_rights import ConfiguredRights
from folkmoot.gateway.limits import MAX_GRANTS
from folkmoot.names.grammar import RESERVED_NAMES
from folkmoot.names.safe_names import full_pattern
from folkmoot.settings import load
from tests.docs.pages import DOCS

PAGE = (DOCS / "operations" / "rights.md").read_text("utf-8")
ROWS = re.findall(r"^\| `([^`]+)` \| (.+) \|$", PAGE, re.MULTILINE)

OPENS = {
    "mcp.request.tools/call:files:read_file": "mcp.request.tools/call:files:read_file",
    "mcp.request.tools/call:files:read_*": "mcp.request.tools/call:files:read_text",
    "mcp.request.tools/call:files:*": "mcp.request.tools/call:files:anything",
    "mcp.request.prompts/get:files:*": "mcp.request.prompts/get:files:summary",
    "mcp.request.resources/*:files://*": "mcp.request.resources/subscribe:files://a/b",
    "mcp.request.resources/read:files://notes/*": "mcp.request.resources/read:files://notes/1",
    "mcp.request.*": "mcp.request.tools/call:later:tool",
    "!mcp.request.tools/call:files:delete_*": "mcp.request.tools/call:files:delete_all",
}


def test_every_pattern_of_the_page_speaks_of_what_it_says():
    assert [pattern for pattern, _ in ROWS if "mcp." in pattern] == list(OPENS)
    for pattern, kind in OPENS.items():
        assert capability(pattern).matches(parse(kind)), pattern


def test_every_short_form_of_the_page_stands_for_what_it_says():
    shorts = {short: full.strip("`") for short, full in ROWS if full.startswith("`mcp.")}
    assert len(shorts) == 3
    for short, full in shorts.items():
        assert full_pattern(short) == full


@pytest.mark.parametrize("block", re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
def test_the_settings_of_the_page_can_be_used(block, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(block)
    settled = ConfiguredRights(load(file, environ={}).gateway)
    assert "gina" in settled.named
    assert settled.of("gina") or "[asks." in block


def test_names_and_limits_of_the_page_are_the_hubs():
    assert all(f"`{name}`" in PAGE for name in RESERVED_NAMES)
    assert f"{MAX_CAPABILITIES:,} capabilities" in PAGE
    assert f"{MAX_GRANTS:,} grants" in PAGE
