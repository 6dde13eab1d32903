"""The apps that ask to act for people, found by their ids."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.limits import MAX_APP_DOCUMENT_BYTES, MAX_CLIENT_ID
from folkmoot.core.oauth.clients import (
    Client,
    Registration,
    Registrations,
    from_document,
    is_document_id,
)
from folkmoot.vault import SealedIds, Vault

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock

MOST_DOCUMENTS: Final = 256
DOCUMENT_SECONDS: Final = 600
"""For how long what a document says is believed."""
ROW: Final = "app"

Fetch = Callable[[str, int], Awaitable[tuple[str, bytes]]]
"""The type and the content of the document at a URL of at most so many bytes."""


def registrations(vault: Vault) -> Registrations:
    """Registrations that open again after a restart, at every node."""
    ids = SealedIds(vault, "app registration", Registration, MAX_CLIENT_ID)
    key = vault.derive("app secret")
    return Registrations(
        seal=lambda found: ids.make(ROW, found),
        open_=lambda client_id: ids.open(ROW, client_id),
        secret_of=lambda client_id: hmac.new(key, client_id.encode(), sha256).hexdigest(),
    )


class Clients(Entity):
    """Knows apps that registered, and with `fetch` those that publish a document."""

    registrations: Registrations
    clock: Clock
    fetch: Fetch | None = None
    _read: OrderedDict[str, tuple[float, Client]] = field(default_factory=OrderedDict)

    async def find(self, client_id: str) -> Client:
        """The app with an id; an `OAuthError` tells the person, or the app, why there is none."""
        if not is_document_id(client_id):
            found = self.registrations.client(client_id)
            if found is None:
                sentence = "This hub does not know the app. Start again there, so it registers."
                raise e.OAuthError("invalid_client", sentence, 401)
            return found
        if self.fetch is None:
            sentence = "This hub does not fetch documents of apps; the app can register instead."
            raise e.OAuthError("invalid_client", sentence, 401)
        now = self.clock.now()
        until, client = self._read.get(client_id, (0.0, None))
        if client is not None and until > now:
            return client
        try:
            type_, body = await self.fetch(client_id, MAX_APP_DOCUMENT_BYTES)
        except e.CarryError as error:
            sentence = f"The app's document cannot be read. {error.message}"
            raise e.OAuthError("invalid_client", sentence, 401) from None
        client = from_document(client_id, body, type_)
        self._read[client_id] = (now + DOCUMENT_SECONDS, client)
        self._read.move_to_end(client_id)
        if len(self._read) > MOST_DOCUMENTS:
            self._read.popitem(last=False)
        return client
