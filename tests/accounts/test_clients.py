"""Apps are found by their ids: those that registered, and those that publish a document."""

from __future__ import annotations

import json

import pytest

from folkmoot.accounts import clients
from folkmoot.accounts.clients import Clients, registrations
from folkmoot.core import errors as e
from folkmoot.vault import Vault
from tests.accounts.support import SetClock

ID = "https://app.example/client.json"
BACK = "http://localhost/callback"
DOCUMENT = {"client_id": ID, "client_name": "App", "redirect_uris": [BACK]}


class Web:
    """The documents of the web, and how often each was fetched."""

    def __init__(self, **documents):
        self.documents = {ID: DOCUMENT, **documents}
        self.fetched: list[str] = []

    async def fetch(self, url, _most):
        self.fetched.append(url)
        if url not in self.documents:
            raise e.ServerUnreachable("The server at https://app.example cannot be reached.")
        return "application/json", json.dumps(self.documents[url]).encode()


@pytest.fixture
def web():
    return Web()


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
def found(web, clock):
    return Clients(registrations(Vault(b"d" * 32, "key")), clock, web.fetch)


async def test_an_app_that_registered_is_known_again_by_the_hub_that_gave_the_id_alone(found):
    body = json.dumps({"client_name": "App", "redirect_uris": [BACK]}).encode()
    told = found.registrations.register(body, 0)
    app = await found.find(told["client_id"])
    assert (app.name, app.redirect_uris, app.host) == ("App", (BACK,), "")
    assert found.registrations.authenticated(app, told["client_secret"])
    assert not found.registrations.authenticated(app, "")
    elsewhere = Clients(registrations(Vault(b"e" * 32, "key")), found.clock)
    for others, id_ in ((elsewhere, app.id), (found, app.id[:-2]), (found, f"{app.id}A")):
        with pytest.raises(e.OAuthError, match="does not know the app") as refused:
            await others.find(id_)
        assert refused.value.status == 401


async def test_a_document_is_fetched_once_in_a_while(found, web, clock):
    for _ in range(3):
        app = await found.find(ID)
    assert (app.name, app.host, web.fetched) == ("App", "app.example", [ID])
    clock.seconds += clients.DOCUMENT_SECONDS
    web.documents[ID] = {**DOCUMENT, "client_name": "Renamed"}
    assert (await found.find(ID)).name == "Renamed"


async def test_of_documents_the_last_that_were_asked_for_are_kept(found, web, monkeypatch):
    monkeypatch.setattr(clients, "MOST_DOCUMENTS", 2)
    for number in range(3):
        url = f"https://{number}.example/client.json"
        web.documents[url] = {**DOCUMENT, "client_id": url}
        await found.find(url)
    await found.find("https://2.example/client.json")
    await found.find("https://0.example/client.json")
    assert len(web.fetched) == 4


async def test_a_document_that_cannot_be_read_says_why_and_is_asked_for_again(found, web):
    del web.documents[ID]
    for _ in range(2):
        with pytest.raises(e.OAuthError, match=r"cannot be read\. The server at"):
            await found.find(ID)
    assert len(web.fetched) == 2
    web.documents[ID] = {**DOCUMENT, "client_id": "https://other.example/client.json"}
    with pytest.raises(e.OAuthError, match="its own URL"):
        await found.find(ID)


async def test_a_hub_that_fetches_nothing_knows_no_documents(found):
    found.fetch = None
    with pytest.raises(e.OAuthError, match="can register instead"):
        await found.find(ID)
