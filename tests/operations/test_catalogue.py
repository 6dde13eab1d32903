from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from folkmoot.operations import CATALOGUE
from folkmoot.operations.inbox_app import inbox_page
from folkmoot.operations.row import WORDS_OF_OTHERS

SPECIFICATION: dict[str, Any] = json.loads(
    (Path(__file__).parent / "specification.json").read_text("utf-8")
)
TOOLS = {tool.name: tool for tool in CATALOGUE.tools}


def named_in(namespace: str, names: str) -> set[str]:
    return {f"{namespace}/{name}" for name in names.split()}


DESTROYING = named_in("msg", "delete_message delete_thread delete_account remove_contact")
BEYOND = DESTROYING | named_in("msg", "whoami thread blocks")
ROOMS = named_in(
    "room",
    "list create join leave say delete_message read mark_read tools call respond propose proposals "
    "decide invite",
)
FINDERS = named_in("folkmoot", "find_tool call_tool")
OWN = named_in("folkmoot", "tokens") | named_in("ask", "create decide list result withdraw")
# Tools that reach nobody but their caller.
ALONE = (
    DESTROYING
    | named_in(
        "msg",
        "register recover whoami set_profile change_handle mark_read archive star mute add_contact "
        "block blocks",
    )
    | {"room/mark_read"}
)

named = pytest.mark.parametrize("name", SPECIFICATION)


def widened(ours: Any, theirs: Any, path: str = "") -> None:
    """Everything of their schema is in ours; ours may have more members that are not required."""
    if not isinstance(theirs, dict):
        assert ours == theirs, path
        return
    for key, value in theirs.items():
        assert key in ours, f"{path}/{key}"
        widened(ours[key], value, f"{path}/{key}")
    if path.endswith("properties") or not path:
        return
    assert ours.keys() - theirs.keys() <= {"description"}, path


@pytest.mark.requirement("mcp.twenty-tools", "mcp.tools-only")
def test_the_twenty_tools_are_there_and_seven_more_and_those_of_rooms():
    assert len(SPECIFICATION) == 20
    assert TOOLS.keys() == SPECIFICATION.keys() | BEYOND | ROOMS | FINDERS | OWN


@pytest.mark.requirement(
    "mcp.schemas-not-narrower",
    "recovery.memory-instruction",
    *(f"tool.{name.removeprefix('msg/').replace('_', '-')}.schema" for name in SPECIFICATION),
)
@named
def test_each_schema_and_description_is_that_of_the_specification(name):
    tool, theirs = TOOLS[name], SPECIFICATION[name]
    assert tool.description == theirs["description"]
    widened(tool.schema, theirs["schema"])
    assert tool.schema["required"] == theirs["schema"]["required"]


@pytest.mark.requirement("mcp.app-only-marked")
@named
def test_visibility_and_authentication_are_those_of_the_specification(name):
    tool, theirs = TOOLS[name], SPECIFICATION[name]
    assert tool.app_only is (theirs["visibility"] == "app")
    assert tool.public is not theirs["authentication"]


@pytest.mark.requirement("wire-name.no-root-combinators", "wire-name.canonical-combinators")
def test_combinators_at_the_root_are_shown_in_the_canonical_style_alone():
    canonical = CATALOGUE.listing("canonical", app_only=True)
    with_choice = {tool["name"] for tool in canonical if "oneOf" in tool["inputSchema"]}
    assert with_choice == {"msg/send", "msg/reply", "room/invite", "room/respond"}
    for tool in CATALOGUE.listing("safe", app_only=True):
        assert not {"oneOf", "anyOf", "allOf"} & tool["inputSchema"].keys()


@pytest.mark.requirement("words.open-world")
def test_tools_that_reach_other_people_say_so():
    alone = {name for name, tool in TOOLS.items() if not tool.hints["openWorldHint"]}
    assert alone == ALONE | {"room/create", "folkmoot/tokens"}


@pytest.mark.requirement("words.notice")
def test_the_description_of_a_tool_that_shows_words_of_others_says_what_they_are():
    for listed in CATALOGUE.listing("safe", app_only=True):
        tool = TOOLS[listed["title"]]
        more = f" {WORDS_OF_OTHERS}" if tool.others_words else ""
        assert listed["description"] == tool.description + more


@pytest.mark.requirement("app.single-file")
def test_the_app_is_one_document_that_loads_nothing():
    page = inbox_page()
    assert page.startswith("<!doctype html>")
    (script,) = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    (style,) = re.findall(r"<style[^>]*>(.*?)</style>", page, re.DOTALL)
    outside = page.replace(script, "").replace(style, "").replace('href="data:,"', "")
    assert not re.search(r"(?i)(src|href)\s*=|https?:", outside)
    assert not re.search(r"@import|url\(", style)
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    rules = dict(rule.split(" ", 1) for rule in policy[1].split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest(script)}'"
    assert rules["style-src"] == f"'sha256-{digest(style)}'"
    assert (rules["require-trusted-types-for"], rules["trusted-types"]) == ("'script'", "'none'")


def test_the_app_stays_small_and_writes_nothing_to_the_console():
    page = inbox_page()
    assert len(gzip.compress(page.encode())) <= 150_000
    assert not re.search(r"console\.(log|debug|info|warn|error)", page)


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
