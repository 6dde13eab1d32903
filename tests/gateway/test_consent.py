"""A call whose person has to sign in to the server first: what is asked, and how it goes on."""

from __future__ import annotations

import asyncio
import json

import pytest

from folkmoot.accounts import queries_consents
from folkmoot.core import errors as e
from folkmoot.gateway import consent
from folkmoot.gateway.requests import CallExtras
from tests.gateway.scripted import ANNA, BERT, Scripted, behind, tool

BY_URL = CallExtras(capabilities={"elicitation": {"url": {}}})
BY_FORM = CallExtras(capabilities={"elicitation": {"form": {}}})
CALL = {"name": "notes:read", "arguments": {}}


class Server(Scripted):
    """Lets in whoever is on its list."""

    def __init__(self):
        super().__init__("notes", self._let_in, auth="oauth")
        self.people, self.scope = set(), ""

    def _let_in(self, wanted):
        if wanted.person not in self.people:
            return e.ConsentNeeded("notes", self.scope)
        return {"content": [{"type": "text", "text": wanted.person}]}


@pytest.fixture
async def here(tmp_path):
    async with behind(tmp_path) as here:
        here.server = await here.has(Server(), tools=(tool("read"), tool("write")))
        yield here


async def asked(here, extras=BY_URL, **more):
    return (await here.ask("tools/call", {**CALL, **more}, extras=extras)).result


def answer(wish, action="accept"):
    state = {"requestState": wish["requestState"]}
    return {**state, "inputResponses": {"sign_in": {"action": action}}}


async def consents(here, person=ANNA):
    """Somebody consents elsewhere."""
    texts = ("handle", "display_name", "bio", "privacy", "status", "account_type")
    named = (*texts, "public_key", "private_key", "recovery_hash")
    sql = (
        f"INSERT INTO users (id, {', '.join(named)}, created_at, updated_at) "
        f"VALUES (?, {', '.join('?' * len(named))}, 0, 0) ON CONFLICT DO NOTHING"
    )

    async def unit(tx):
        await tx.execute(sql, (person.account_id, *(person.account_id for _ in named)))
        key = (tx, "notes", person.account_id)
        await queries_consents.begin(*key, person.account_id, "x", 0)
        put = {"account_id": person.account_id, "issuer": "", "scope": "", "tokens": "y"}
        await queries_consents.put(*key, **put, now=0, expires_at=None)

    here.server.people.add(person.account_id)
    await here.store.write(unit)


async def test_the_call_waits_for_the_consent_and_goes_on(here):
    wish = await asked(here)
    assert wish["resultType"] == "input_required"
    question = wish["inputRequests"]["sign_in"]
    assert question["method"] == "elicitation/create"
    assert question["params"]["mode"] == "url"
    assert question["params"]["url"].startswith("https://hub.example/connect/")
    waiting = asyncio.create_task(asked(here, **answer(wish)))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await consents(here)
    assert (await waiting)["content"][0]["text"] == ANNA.account_id


@pytest.mark.parametrize("action", ["decline", "cancel", "accept"])
async def test_whoever_does_not_sign_in_gets_the_link(here, action, monkeypatch):
    monkeypatch.setattr(consent, "WAIT_SECONDS", 0.01)
    told = await asked(here, **answer(await asked(here), action))
    assert told["isError"]
    said = json.loads(told["content"][0]["text"])
    assert said["code"] == "consent_needed"
    assert said["url"] in said["error"]


async def test_a_client_that_cannot_be_led_to_a_page_gets_the_link(here):
    for extras in (BY_FORM, CallExtras()):
        assert (await asked(here, extras))["isError"]
    with pytest.raises(e.ConsentNeeded) as needed:
        await here.ask("resources/read", {"uri": "notes://x/-/y"}, extras=CallExtras())
    assert needed.value.data["url"].startswith("https://hub.example/connect/")


async def test_a_step_up_in_the_middle_asks_once_more(here):
    wish = await asked(here)
    await consents(here)
    here.server.people.clear()
    here.server.scope = "write"
    more = await asked(here, **answer(wish))
    assert "more than you have allowed" in more["inputRequests"]["sign_in"]["params"]["message"]
    assert more["requestState"] != wish["requestState"]


async def test_nobody_takes_part_in_anothers_sign_in(here):
    wish = await asked(here)
    await consents(here)
    for principal, name in ((BERT, "notes:read"), (ANNA, "notes:write")):
        params = {**CALL, "name": name, **answer(wish)}
        with pytest.raises(e.InputStateInvalid):
            await here.ask("tools/call", params, principal, extras=BY_URL)


async def test_a_servers_own_state_is_never_taken_for_ours(here):
    rogue = {"resultType": "input_required", "inputRequests": {}, "requestState": "sign-in:0"}
    await here.has(Scripted("rogue", lambda _: rogue), tools=(tool("read"),))
    told = (await here.ask("tools/call", {**CALL, "name": "rogue:read"}, extras=BY_URL)).result
    params = {**CALL, "name": "rogue:read", **answer(told)}
    with pytest.raises(e.InputStateInvalid):
        await here.ask("tools/call", params, extras=BY_URL)
