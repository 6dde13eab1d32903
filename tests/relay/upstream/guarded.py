"""A server that wants its own sign-in, and its strict authorization server, at one place."""

from __future__ import annotations

import asyncio
import base64
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.mcp.client.places import Asked, Place, agree

BACK = "http://localhost:8000/oauth/callback"


class Guarded:
    """Lets everyone in who consents; takes each refresh token once."""

    def __init__(self, *, seconds: int | None = 1000, **metadata: Any) -> None:
        self.place = Place(self._do)
        self.metadata, self.seconds = metadata, seconds
        self.challenge = 'Bearer scope="read"'
        self.registered: list[Any] = []
        self.codes: dict[str, dict[str, str]] = {}
        # The access and refresh tokens that are good, and whose they are.
        self.access: dict[str, str] = {}
        self.refresh: dict[str, str] = {}
        self.refreshed = 0
        # Who wants a token waits for this; it can be told to fail.
        self.gate = asyncio.Event()
        self.gate.set()
        self.at_gate = asyncio.Event()
        self.failure: tuple[int, Any] | None = None
        # What every call needs beyond what it has, and where it is sent on to.
        self.demand = self.redirect = ""
        self._count = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.place.port}"

    def consent(self, url: str, person: str, **more: str) -> list[tuple[str, str]]:
        """A person opens a link and consents: what their browser brings back."""
        asked = dict(parse_qsl(urlsplit(url).query))
        code = f"code-{len(self.codes)}"
        self.codes[code] = {**asked, "person": person}
        return [("code", code), ("state", asked["state"]), *more.items()]

    async def _do(self, asked: Asked) -> None:
        known = "/.well-known/oauth-"
        if asked.path == f"{known}protected-resource/mcp":
            found = {"resource": self.place.url, "authorization_servers": [self.base]}
            await asked.say_json(found)
        elif asked.path == f"{known}authorization-server":
            await asked.say_json(
                {
                    "issuer": self.base,
                    "authorization_endpoint": f"{self.base}/authorize",
                    "token_endpoint": f"{self.base}/token",
                    "registration_endpoint": f"{self.base}/register",
                    "code_challenge_methods_supported": ["S256"],
                    **self.metadata,
                }
            )
        elif asked.path == "/register":
            self.registered.append(asked.message)
            named = {"client_id": f"hub-{len(self.registered)}", "client_secret": "shh-shh-shh"}
            await asked.say_json(named, 201)
        elif asked.path == "/token":
            await self._token(asked)
        elif self.redirect and asked.path == "/mcp":
            await asked.say(307, location=self.redirect)
        elif asked.headers.get("authorization", "").removeprefix("Bearer ") not in self.access:
            await asked.say(401, www_authenticate=self.challenge)
        elif self.demand:
            demand = f'Bearer error="insufficient_scope", scope="{self.demand}"'
            await asked.say(403, www_authenticate=demand)
        else:
            await agree(asked)

    async def _token(self, asked: Asked) -> None:
        form = dict(parse_qsl(asked.body.decode()))
        if not self.gate.is_set():
            self.at_gate.set()
        await self.gate.wait()
        if self.failure is not None:
            await asked.say_json(self.failure[1], self.failure[0])
            return
        if form["grant_type"] == "refresh_token":
            person = self.refresh.pop(form["refresh_token"], None)
            self.refreshed += 1
        else:
            code = self.codes.pop(form["code"], {})
            digest = sha256(form["code_verifier"].encode()).digest()
            fits = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            fitting = code.get("code_challenge") == fits and form["resource"] == self.place.url
            person = code["person"] if fitting else None
        if person is None:
            await asked.say_json({"error": "invalid_grant"}, 400)
            return
        self._count += 1
        access, refresh = f"access-token-{self._count:032}", f"refresh-token-{self._count:032}"
        self.access[access], self.refresh[refresh] = person, person
        given = {"access_token": access, "token_type": "Bearer", "refresh_token": refresh}
        await asked.say_json(given | ({"expires_in": self.seconds} if self.seconds else {}))
