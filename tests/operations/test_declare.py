"""What is declared once: for oneself and for others, and what a declaration must have."""

from __future__ import annotations

from types import ModuleType

import pytest

from folkmoot.accounts.queries import by_handle
from folkmoot.accounts.queries_invites import ID, ID_DIGITS
from folkmoot.operations import Caller, table
from folkmoot.operations.call import Call
from folkmoot.operations.declare import Declared, Topic, get
from folkmoot.operations.row import NoContent

COLUMNS = {"credentials": "account_id", "invites": "created_by", "browser_codes": "account_id"}
MODULES = [it for it in vars(table).values() if isinstance(it, ModuleType)]
DECLARED = [it for module in MODULES for it in vars(module).values() if isinstance(it, Declared)]
FOR_OTHERS = {each.rows[1].name: each.rows[1] for each in DECLARED if len(each.rows) > 1}
READS = {"folkmoot/tokens_of", "folkmoot/invites"}
BOB = {"handle": "bob"}


def arguments(name, bobs):
    """What an operation is asked to do about bob."""
    return {
        "folkmoot/tokens_of": BOB,
        "folkmoot/create_token_for": BOB,
        "folkmoot/revoke_token_of": {**BOB, "credential": bobs["credentials"][0][0]},
        "folkmoot/create_code_for": BOB,
        "folkmoot/invites": {},
        "folkmoot/withdraw_invite": {"invite": f"{ID}{bobs['invites'][0][0][:ID_DIGITS]}"},
    }[name]


async def stored_of(hub, account):
    """All that these operations could change of an account."""

    async def query(tx):
        sql = "SELECT * FROM {} WHERE {} = ? ORDER BY 1"
        return {
            name: await tx.fetch(sql.format(name, column), (account.id,))
            for name, column in COLUMNS.items()
        }

    return await hub.hub.store.read(query)


@pytest.mark.parametrize("name", FOR_OTHERS)
async def test_whoever_does_it_for_someone_changes_nothing_of_their_own(hub, name):
    found = []
    for handle in ("ada", "bob"):
        await hub.person(handle)
        account = await hub.hub.store.read(lambda tx, it=handle: by_handle(tx, it, 0))
        await hub.hub.accounts.create_invite(account)
        found.append(account)
    ada, bob = found
    before = await stored_of(hub, ada), await stored_of(hub, bob)
    caller = Caller(account=ada, operator=True)
    answer = await hub.hub._dispatcher.perform(FOR_OTHERS[name], arguments(name, before[1]), caller)
    assert await stored_of(hub, ada) == before[0]
    assert (await stored_of(hub, bob) == before[1]) is (name in READS)
    if name == "folkmoot/tokens_of":
        assert [it.id for it in answer.payload.tokens] == [before[1]["credentials"][0][0]]


def test_python_without_docstrings_is_refused():
    async def silent(call: Call) -> NoContent: ...

    declared = Topic(scope="").reads("x/silent", get("/v1/x", "silent", "Say nothing"))(silent)
    with pytest.raises(RuntimeError, match="run Python without -OO"):
        _ = declared.rows
