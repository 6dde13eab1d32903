"""A node that may have missed changes believes no token and no right that it read before."""

from __future__ import annotations

from typing import Any

from folkmoot.core.ports import Tx
from tests.gateway.rights_support import CALL, FILES, READ_FILES, Office, spec

KIND = f"{CALL}:files:read_file"


def doubt(hub: Office) -> None:
    """What a node does that could not read the log of changes for a while."""
    bus: Any = hub.here.store.bus
    for listener in list(bus._doubt_listeners.values()):
        listener()


async def elsewhere(hub: Office, query: str, *values: object) -> None:
    """What another node stores, of which this one does not hear."""

    async def unit(tx: Tx) -> None:
        await tx.execute(query, values)

    await hub.here.store.write(unit)


async def test_rights_are_read_again_with_whoever_is_authenticated_after_a_doubt(hub):
    registered = await hub.accounts.register("gina")
    gina = registered.account

    async def may() -> bool:
        assert await hub.accounts.authenticate(registered.token) is not None
        return hub.may(gina, KIND) == [True]

    assert not await may()
    await elsewhere(hub, "INSERT INTO hub_grants VALUES (?, ?, 1)", gina.id, READ_FILES)
    assert not await may()
    doubt(hub)
    assert await may()
    await elsewhere(hub, "DELETE FROM hub_grants WHERE account_id = ?", gina.id)
    assert await may()
    doubt(hub)
    assert not await may()


async def test_a_token_that_is_being_read_in_a_doubt_is_not_remembered(hub):
    token = (await hub.accounts.register("gina")).token
    store = hub.here.store

    async def meanwhile() -> None:
        store.after_read = None
        await elsewhere(hub, "DELETE FROM credentials")
        doubt(hub)

    store.after_read = meanwhile
    assert await hub.accounts.authenticate(token) is not None
    assert await hub.accounts.authenticate(token) is None


async def test_what_is_heard_while_rights_are_read_again_is_not_overwritten(hub):
    registered = await hub.accounts.register("gina")
    store = hub.here.store
    doubt(hub)

    async def token_read() -> None:
        store.after_read = rights_read

    async def rights_read() -> None:
        store.after_read = None
        await hub.granting.grant("gina", [READ_FILES])

    store.after_read = token_read
    assert await hub.accounts.authenticate(registered.token) is not None
    assert store.after_read is None
    assert hub.may(registered.account, KIND) == [True]


async def test_what_is_heard_while_all_rights_are_first_read_is_not_overwritten(hub):
    gina = (await hub.accounts.register("gina")).account
    store = hub.here.store

    async def meanwhile() -> None:
        store.after_read = None
        await hub.granting.grant("gina", [READ_FILES])

    store.after_read = meanwhile
    hub.rights = await hub.again(spec(FILES))
    assert store.after_read is None
    assert hub.may(gina, KIND) == [True]
