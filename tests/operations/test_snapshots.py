"""What clients have seen until now, byte for byte: listings, the OpenAPI document, refusals.

`FOLKMOOT_UPDATE_SNAPSHOTS=1` writes the snapshots anew; then look at what git says has changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import msgspec
import pytest

from folkmoot.accounts.authentication import KnownIdentities
from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.gateway.listing import Listings
from folkmoot.gateway.rights import HubRights
from folkmoot.mcp.server.heads import read_head
from folkmoot.mcp.wire import TOOLS_LIST
from folkmoot.names import NameStyle
from folkmoot.operations import CATALOGUE, Caller
from folkmoot.operations.arguments import decode
from folkmoot.operations.inbox_app import APP_TYPE
from folkmoot.operations.openapi import document
from folkmoot.transports.mcp.arrivals import Exchange
from folkmoot.transports.mcp.lists import Lists, own_lists
from tests.operations.corpus import cases, written

SNAPSHOTS = Path(__file__).parent / "snapshots"
INFO = {"name": "folkmoot", "title": "Folkmoot", "version": "1"}
STYLES: tuple[NameStyle, ...] = get_args(NameStyle)
ERAS = ("sessions", "stateless")
MODES: dict[str, dict[str, Any]] = {
    "model": {},
    "app": {"app": APP_TYPE},
    "all": {"all_tools": True},
    "search": {"search": True},
    "search-app": {"search": True, "app": APP_TYPE},
}


def listing(style: NameStyle, era: str, mode: str) -> bytes:
    unused: Any = None
    accounts: Any = SimpleNamespace(authentication=SimpleNamespace(known=KnownIdentities()))
    listings = Listings(own_lists(CATALOGUE), server_info=INFO)
    gateway: Any = SimpleNamespace(listings=listings, search=unused)
    lists = Lists(CATALOGUE, HubRights(unused, SystemClock(), accounts), gateway, INFO)
    settings = {"app": "", **MODES[mode]}
    app = settings.pop("app")
    session: Any = None if era == "stateless" else object()
    exchange = Exchange(
        caller=Caller(), scope={}, head=read_head(()), names=style, session=session, **settings
    )
    return bytes(lists.result(TOOLS_LIST, exchange, app=app))


def kept(name: str, seen: str) -> str:
    """What a snapshot says; what is seen instead where snapshots are to be written."""
    path = SNAPSHOTS / name
    if os.environ.get("FOLKMOOT_UPDATE_SNAPSHOTS"):
        path.write_text(seen, "utf-8")
    return path.read_text("utf-8")


def lines_of(style: NameStyle) -> Iterator[str]:
    """Every tool as it is listed, one a line."""
    for mode in ("all", "search"):
        entries = msgspec.json.decode(listing(style, "sessions", mode))["tools"]
        yield from (msgspec.json.encode(each).decode() for each in entries)


@pytest.mark.parametrize("style", STYLES)
def test_every_tool_is_listed_as_before(style):
    seen = "".join(f"{line}\n" for line in lines_of(style))
    assert seen == kept(f"tools-{style}.jsonl", seen)


def test_every_listing_holds_what_it_held():
    """Each listing is made of the lines above: which of them, and what stands around them."""
    known = {style: dict(enumerate(lines_of(style))) for style in STYLES}
    seen = []
    for style, era, mode in product(STYLES, ERAS, MODES):
        page = listing(style, era, mode).decode()
        entries = msgspec.json.decode(page)["tools"]
        lines = [msgspec.json.encode(each).decode() for each in entries]
        numbers = [number for line in lines for number, it in known[style].items() if it == line]
        before, joined, after = page.partition(",".join(lines))
        assert joined
        seen.append(f"{style} {era} {mode}: {before}{numbers}{after}\n")
    assert "".join(seen) == kept("listings.txt", "".join(seen))


def lines_of_document() -> Iterator[str]:
    """The OpenAPI document, one operation or schema a line."""
    made = document(version="1", url="https://hub.example")
    schemas = made["components"].pop("schemas")
    for path, item in made.pop("paths").items():
        yield from (f"{path} {name} {json.dumps(each)}\n" for name, each in item.items())
    yield from (f"{name} {json.dumps(each)}\n" for name, each in schemas.items())
    yield f"{json.dumps(made)}\n"


def test_the_openapi_document_is_as_before():
    seen = "".join(lines_of_document())
    assert seen == kept("openapi.txt", seen)


def tried(schema: dict[str, Any], name: str) -> Iterator[str]:
    """What comes of each of the arguments that a tool is tried with."""
    tool = CATALOGUE.find(name)
    for arguments in cases(schema):
        try:
            told = msgspec.json.encode(decode(tool.takes, arguments)).decode()
        except e.ArgumentInvalid as error:
            told = f"! {error.data['field']}: {error.message}"
        yield f"{name} {written(arguments)} {told}\n"


@pytest.mark.requirement("mcp.argument-errors")
def test_arguments_are_taken_and_refused_as_before():
    entries = map(json.loads, (SNAPSHOTS / "tools-canonical.jsonl").read_text("utf-8").splitlines())
    lines = (line for entry in entries for line in tried(entry["inputSchema"], entry["name"]))
    seen = "".join(dict.fromkeys(lines))
    assert seen == kept("arguments.txt", seen)
