"""What tests of rights share: accounts in a real store, and the rights that follow them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from folkmoot.accounts import Account
from folkmoot.core.kinds import parse
from folkmoot.gateway.grants import Granting, GrantViews
from folkmoot.gateway.rights import HubRights
from folkmoot.settings.backends import BackendSpec, GatewaySpec
from tests.accounts.support import World, world

CALL = "mcp.request.tools/call"
READ_FILES = f"{CALL}:files:read_*"


def backend(namespace: str, *, everyone: bool = False) -> BackendSpec:
    return BackendSpec(name=namespace, namespace=namespace, command=("true",), everyone=everyone)


def spec(*backends: BackendSpec, **tables: Any) -> GatewaySpec:
    """Settings with these backends, groups and grants."""
    return GatewaySpec(backends={each.namespace: each for each in backends}, **tables)


FILES = backend("files")
GITHUB = backend("github")
SEARCH = backend("search", everyone=True)


class Office:
    """A hub's accounts and rights, and the operator's desk."""

    def __init__(self, here: World, rights: HubRights) -> None:
        self.here = here
        self.clock = here.clock
        self.accounts = here.accounts
        self.rights = rights
        self.granting = Granting(rights, here.store, here.clock, here.accounts)
        self.views = GrantViews(rights, self.granting, here.store, here.clock)

    async def again(self, settings: GatewaySpec) -> HubRights:
        """The rights as a hub finds them that starts now."""
        return await HubRights.open(self.here.store, self.clock, self.accounts, settings)

    def may(self, account: Account | None, *kinds: str) -> list[bool]:
        rights = self.rights.of(account)[1]
        return [rights.allows(parse(kind)) for kind in kinds]

    async def invited(self, handle: str) -> Account:
        code = (await self.accounts.invite_for(handle)).code
        return (await self.accounts.register(handle, invite_code=code)).account


@asynccontextmanager
async def office(folder: Path, given: GatewaySpec | None = None) -> AsyncIterator[Office]:
    async with world(folder) as here:
        yield Office(here, await HubRights.open(here.store, here.clock, here.accounts, given))
