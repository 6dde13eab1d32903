"""What the tests of the catalogue share: definitions, real pins, and a catalogue made of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from folkmoot.core.capability import Rights
from folkmoot.gateway.catalogue import Catalogue
from folkmoot.gateway.listing import Listings
from folkmoot.gateway.model import Definition, Inventory
from folkmoot.gateway.part import BackendOffer, make_part
from folkmoot.gateway.pins import Pins
from tests.clocks import StillClock
from tests.gateway.scripted import tool
from tests.harness import run
from tests.stores import open_store

EVERYTHING = Rights(["*"])
NOTHING = Rights([])
SERVER_INFO = {"name": "folkmoot", "version": "0"}
OWN = ("msg/send", "msg/inbox")


async def verdicts(
    pins: Pins, *tools: Definition, trusted: bool = False, namespace: str = "docs"
) -> dict[str, str]:
    """What pins say of the tools of a backend."""
    judged = await pins.judge(namespace, tools, trusted=trusted)
    return {name: each.verdict for name, each in judged.items()}


def tools(*names: str) -> Inventory:
    return Inventory(tools=tuple(tool(name) for name in names))


@asynccontextmanager
async def pinning(folder: Path) -> AsyncIterator[tuple[Pins, StillClock]]:
    """Pins in a real store."""
    clock = StillClock()
    store = await open_store(folder / "folkmoot.db", synchronous="normal")
    try:
        pins = Pins(store, clock)
        await pins.load()
        yield pins, clock
    finally:
        await store.close()


def parts_of(
    folder: Path, inventories: Mapping[str, Inventory], **options: Any
) -> dict[str, BackendOffer]:
    """The parts of some backends that are seen for the first time."""

    async def made() -> dict[str, BackendOffer]:
        async with pinning(folder) as (pins, _):
            return {
                namespace: await make_part(namespace, inventory, pins, **options)
                for namespace, inventory in inventories.items()
            }

    return run(made())


def catalogue_of(
    folder: Path, absent: Mapping[str, str] | None = None, /, **inventories: Inventory
) -> Catalogue:
    return Catalogue(parts_of(folder, inventories), absent, OWN)


def own_listing(style: str, apps: bool) -> list[Definition]:
    """Two tools of the hub's own, and a third for apps."""
    names = [*OWN, "msg/poll"] if apps else list(OWN)
    shown = {name: name.replace("/", "_") if style == "safe" else name for name in names}
    return [tool(shown[name], title=name, _meta={"folkmoot/name": name}) for name in names]


def listings_of(
    folder: Path, absent: Mapping[str, str] | None = None, /, page_size: int = 1_000, **offers: Any
) -> Listings:
    """Lists of what backends offer."""
    listings = Listings({"tools": own_listing}, server_info=SERVER_INFO, page_size=page_size)
    listings.renew(catalogue_of(folder, absent, **offers))
    return listings


def read(page: msgspec.Raw) -> dict[str, Any]:
    """A page as a client reads it."""
    return msgspec.json.decode(page)


def names_of(page: msgspec.Raw) -> list[str]:
    return [each["name"] for each in read(page)["tools"]]
