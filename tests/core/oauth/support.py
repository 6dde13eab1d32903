"""Apps and their registrations, sealed as a hub seals them."""

from __future__ import annotations

import json
import re
from functools import partial
from hashlib import blake2b
from typing import Any

from folkmoot.core.limits import MAX_CLIENT_ID
from folkmoot.core.oauth.clients import Client, Registration, Registrations
from folkmoot.vault import SealedIds, Vault

ISSUER = "https://hub.example"
RESOURCE = "https://hub.example/mcp"
BACK = "http://localhost:54212/callback"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

DESCRIPTION = re.compile(r"[ !#-\[\]-~]+")
"""What an `error_description` can hold."""
APP = Client("app-1", "App", (BACK, "https://app.example/cb?tenant=1", "cursor://auth/cb"))


def registrations(key: bytes = b"k") -> Registrations:
    ids = SealedIds(Vault(key * 32, "m"), "oauth_client", Registration, MAX_CLIENT_ID)

    def secret_of(client_id: str) -> str:
        return blake2b(client_id.encode(), key=key, digest_size=32).hexdigest()

    return Registrations(
        seal=partial(ids.make, ""), open_=partial(ids.open, ""), secret_of=secret_of
    )


def metadata(**members: Any) -> bytes:
    given = {"client_name": "Claude Code", "redirect_uris": [BACK]}
    given |= {"token_endpoint_auth_method": "none", **members}
    return json.dumps({name: value for name, value in given.items() if value is not ...}).encode()
