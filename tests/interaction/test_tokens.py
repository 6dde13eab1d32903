"""Many tokens for one account, from outside: made, listed and revoked, and what ends with them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from folkmoot.operations import CATALOGUE
from tests.harness import reached
from tests.interaction.room_client import joined
from tests.interaction.test_mail_sessions import call, open_session, register, told
from tests.mcp_harness import INVALID, both_eras, call_tool, meeting, rpc
from tests.transports.rest.support import ROOMS, Asker, done, house, refused

ME = "/v1/me/credentials"
NOT_AUTHENTICATED = 4401


@pytest.mark.requirement("credentials.many")
async def test_tokens_are_created_listed_and_revoked_with_rest(tmp_path):
    async with house(tmp_path) as here:
        ada, bob = await here.people("ada", "bob")
        answer = await ada.ask("POST", ME, {"label": "laptop", "expires_in": 3600})
        new = done(answer, 201)
        assert answer.headers["location"] == f"{ME}/{new['id']}"
        assert new["expires_at"] == new["created_at"] + 3600
        listed = (await ada.get(ME))["tokens"]
        marked = {it["label"]: it["current"] for it in listed}
        assert marked == {"first token": True, "laptop": False}
        assert not any("sk_" in json.dumps(it) or "token" in it for it in listed)
        laptop = Asker(here.port, new["token"])
        seen = (await laptop.get(ME))["tokens"]
        assert [it["label"] for it in seen if it["current"]] == ["laptop"]
        # What expires cannot be made to last by making another with it.
        refused(await laptop.ask("POST", ME, {"label": "for ever"}), 400, "argument_invalid")
        refused(await bob.ask("DELETE", f"{ME}/{new['id']}"), 404, "credential_not_found")
        assert (await ada.ask("DELETE", f"{ME}/{new['id']}")).status == 204
        refused(await ada.ask("DELETE", f"{ME}/{new['id']}"), 404, "credential_not_found")
        refused(await laptop.ask("GET", ME), 401, "token_invalid")
        assert len((await ada.get(ME))["tokens"]) == 1


@pytest.mark.requirement("credentials.no-secret-to-a-model")
@both_eras
async def test_a_model_lists_tokens_and_neither_creates_nor_revokes_them(hub):
    ann = await hub.person("ann")
    [token] = (await ann.call("folkmoot/tokens"))["tokens"]
    assert (token["label"], token["current"]) == ("first token", True)
    assert token.keys() == {
        "id", "kind", "label", "scope", "created_at", "used_at", "expires_at", "current",
    }  # fmt: skip
    for name in ("folkmoot/create_token", "folkmoot/revoke_token"):
        assert CATALOGUE.named(name) is None


@pytest.mark.requirement("credentials.revoked-at-once")
async def test_revoking_a_token_ends_at_once_what_is_open_with_it_and_nothing_else(hub):
    account = await hub.hub.accounts.register("ada")
    ada = Asker(hub.port, account.token)
    await ada.create("tea")
    new = done(await ada.ask("POST", ME, {"label": "phone"}), 201)
    phone = Asker(hub.port, new["token"])

    def inbox(token: str) -> asyncio.Future[Any]:
        return asyncio.ensure_future(call_tool(hub.port, token, "msg/inbox", wait=50))

    async with (
        joined(hub.port, account.token, "tea") as kept,
        joined(hub.port, new["token"], "tea") as ended,
    ):
        mail = [inbox(token) for token in (account.token, new["token"])]
        room = asyncio.ensure_future(phone.ask("GET", f"{ROOMS}/tea/messages?after=99&wait=50"))
        await reached(lambda: len(hub.hub.mcp._exchanges) == 2)
        await reached(lambda: len(hub.hub.rest._waiting._callers) == 1)
        assert (await ada.ask("DELETE", f"{ME}/{new['id']}")).status == 204
        refused(await phone.ask("GET", ROOMS), 401, "token_invalid")
        refused(await room, 401, "token_invalid")
        assert INVALID.encode() in (await mail[1]).body
        assert await ended.closed() == NOT_AUTHENTICATED
        assert not mail[0].done()
        await ada.say("tea", "still here")
        await kept.kind("chat.message")
        mail[0].cancel()


@pytest.mark.requirement("credentials.session-row", "credentials.revoked-at-once")
async def test_a_session_signed_in_by_registering_ends_when_its_token_is_revoked(tmp_path):
    async with meeting(tmp_path) as there:
        session_id = await open_session(there)
        account = await register(there, session_id, "ada")
        assert told(await call(there, session_id))["handle"] == "ada"
        ada = Asker(there.port, account["token"])
        [token] = (await ada.get(ME))["tokens"]
        listed = rpc("tools/call", {"name": "folkmoot_tokens", "arguments": {}}, 3)
        [shown] = told(await call(there, session_id, message=listed))["tokens"]
        assert (shown["id"], shown["current"]) == (token["id"], True)
        assert (await ada.ask("DELETE", f"{ME}/{token['id']}")).status == 204
        assert INVALID.encode() in (await call(there, session_id)).body
    async with meeting(tmp_path) as there:
        assert (await call(there, session_id)).status == 404


@pytest.mark.requirement("credentials.session-row")
async def test_closing_a_session_that_was_signed_in_removes_its_row_and_not_its_token(hub):
    session_id = await open_session(hub)
    account = await register(hub, session_id, "ada")

    async def kinds() -> list[str]:
        query = "SELECT kind FROM credentials ORDER BY kind"
        return [kind for (kind,) in await hub.hub.store.read(lambda tx: tx.fetch(query))]

    assert await kinds() == ["session", "token"]
    await hub.ask("DELETE", headers={"mcp-session-id": session_id})
    assert await kinds() == ["token"]
    assert await hub.hub.accounts.authenticate(account["token"]) is not None
