"""`folkmoot doctor --as`: the steps by which an MCP client signs in to a server, up to consent."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.limits import MAX_UPSTREAM_ANSWER_BYTES
from folkmoot.core.oauth import discovery
from folkmoot.core.oauth.discovery import Answer, AuthorizationServer, Challenge, OwnClient, Request
from folkmoot.core.oauth.metadata import RESOURCE_PATH
from folkmoot.core.oauth.redirects import LOOPBACK, split
from folkmoot.core.strict import Limits, decode_object
from folkmoot.datafolder import Finding
from folkmoot.mcp.wire import ACCEPT_BOTH

if TYPE_CHECKING:
    from folkmoot.core.oauth.discovery import Steps
    from folkmoot.datafolder import Level

T = TypeVar("T")

LIMITS: Final = Limits(MAX_UPSTREAM_ANSWER_BYTES, nesting=16)
VERIFIER: Final = "made-up-by-folkmoot-doctor-to-try-the-first-steps"
ACCEPT: Final = ("accept", ACCEPT_BOTH)
HELLO: Final = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"folkmoot-doctor","version":"1"}}}'
)


class ClientRow(Struct, frozen=True):
    """How a client signs in."""

    name: str
    redirect_uri: str
    """The form of the address that people come back to."""
    first: tuple[str, ...] = ("POST",)
    """What it asks without a token, until it is refused."""
    document: str = ""
    """Its client id, where servers take the URL of a document."""
    compares: bool = True
    """Whether it refuses metadata that name the server otherwise than its person does."""
    hosted: bool = False
    """Whether it runs at its maker's, and so reaches public addresses alone."""


CLIENTS: Final = {
    "claude-code": ClientRow(
        "Claude Code",
        "http://localhost:3118/callback",
        document="https://claude.ai/oauth/claude-code-client-metadata",
    ),
    "codex": ClientRow(
        "Codex",
        "http://127.0.0.1:3118/callback",
        first=("GET", "POST"),
        document="https://chatgpt.com/oauth/codex/client.json",
        compares=False,
    ),
    "chatgpt": ClientRow(
        "ChatGPT", "https://chatgpt.com/connector/oauth/doctor", compares=False, hosted=True
    ),
    "inspector": ClientRow("MCP Inspector", "http://127.0.0.1:6276/oauth/callback"),
}
ADVICE: Final = {
    "address": "Give it a public name with a certificate; a hub needs public_url too.",
    "first request": "Start the server, or give the address of its MCP endpoint, such as /mcp.",
    "resource metadata": "Publish them as RFC 9728 says, on the server's own address.",
    "authorization server": "Publish its metadata as RFC 8414 says.",
    "registration": "Have the server register clients, or give the client an id by hand.",
}
LOG: Final = "Look into the log of the authorization server."


class Walk(Entity):
    """One client on its way to a server."""

    client: ClientRow
    url: str
    found: list[Finding] = msgspec.field(default_factory=list)
    step: str = "address"
    resource: str = ""
    """What the metadata call the server."""

    async def run(self) -> list[Finding]:
        """What each step comes to; none is taken after one that fails."""
        try:
            await self._steps()
        except e.CarryError as error:
            self._note(error.message.rstrip("."), "problem", ADVICE.get(self.step, LOG))
        return self.found

    def _note(self, text: str, level: Level = "ok", advice: str = "") -> None:
        self.found.append(Finding(self.step, level, text, advice))

    async def _steps(self) -> None:
        challenge, is_open = await self._knock()
        server = await self._discover(challenge, is_open=is_open)
        registered = None if server is None else await self._register(server)
        if server is None or registered is None:
            return
        back = {"redirect_uri": self.client.redirect_uri, "verifier": VERIFIER}
        given = {"state": "doctor", "scope": discovery.scope_for(server, challenge)}
        await self._open(discovery.authorization_url(server, registered, **given, **back))
        steps = discovery.exchange(server, registered, code="made-up", **back)
        await self._exchange(registered, steps)

    async def _knock(self) -> tuple[Challenge, bool]:
        """The challenge of the server, and whether it answers without a token."""
        name, methods = self.client.name, self.client.first
        parts = split(self.url)
        is_local = parts is None or (parts.host in LOOPBACK and not self.client.hosted)
        if not is_local and not self.url.startswith("https:"):
            alone = "from the internet" if self.client.hosted else "to other machines"
            raise e.SignInRefused(f"{name} connects {alone} by https alone.")
        self.step = "address" if self.client.hosted else "first request"
        headers = (ACCEPT, ("content-type", "application/json"))
        answer, method = Answer(0), ""
        for method in methods:
            body = HELLO if method == "POST" else b""
            # The answer can be a stream, which has no end.
            answer = await self._send(Request(self.url, method, headers, body), head_only=True)
            if answer.status == 401:
                break
            if method != methods[-1]:
                words = f"{method} without a token is answered {answer.status}, not 401"
                self._note(words, "warning", f"{name} looks there first.")
        self.step, challenge = "first request", discovery.read_challenge(answer.challenges)
        if answer.status != 401:
            if answer.status >= 300:
                raise e.SignInRefused(f"{method} without a token is answered {answer.status}.")
            self._note(f"{method} is answered without a token: nobody has to sign in for it")
        elif challenge.resource_metadata:
            self._note(f"{method} is answered 401, and names {challenge.resource_metadata}")
        else:
            advice = "Name resource_metadata in WWW-Authenticate; not every client guesses it."
            self._note(f"{method} is answered 401, and names no metadata", "warning", advice)
        return challenge, answer.status != 401

    async def _discover(self, challenge: Challenge, *, is_open: bool) -> AuthorizationServer | None:
        self.step, known = "resource metadata", (None, origin(self.url))
        try:
            server = await self._follow(discovery.discover(self.url, challenge))
        except e.SignInRefused:
            # Its place says it too, where they lie elsewhere and were not read.
            self.resource = self.resource or challenge.resource_metadata.replace(RESOURCE_PATH, "")
            if is_open and not self.resource:
                self.step = "sign-in"
                self._note("the server offers none, and works without")
                return None
            if self.step != "resource metadata" or origin(self.resource) in known:
                raise
            words = f"they name the server {self.resource}, and not {self.url}"
            advice = f"Give {self.client.name} that address, or have the server name this one."
            self._note(words, "problem" if self.client.compares else "warning", advice)
            if self.client.compares:
                return None
            server = await self._follow(discovery.discover(self.resource, Challenge()))
        else:
            self.step = "resource metadata"
            if self.resource:
                self._note(f"the server is {self.resource}")
            elif self.client.hosted:
                raise e.SignInRefused(f"There are none, without which {self.client.name} stops.")
            else:
                words = "none, so the server's own origin is asked"
                self._note(words, "warning", ADVICE[self.step])
        self.step = "authorization server"
        iss = ", and says iss" if server.names_itself else ""
        self._note(f"{server.issuer} has PKCE with S256{iss}")
        return server

    async def _register(self, server: AuthorizationServer) -> OwnClient | None:
        self.step, row = "registration", self.client
        if not server.registration_endpoint and not (row.document and server.documents):
            if not server.documents:
                raise e.SignInRefused("The authorization server registers nobody by itself.")
            advice = f"Give {row.name} the URL of a document about it. The rest was not tried."
            self._note("only by the URL of a document", "warning", advice)
            return None
        who = {"document": row.document, "name": f"Folkmoot doctor as {row.name}"}
        steps = discovery.register(server, row.redirect_uri, is_public=True, **who)
        registered = await self._follow(steps)
        how = registered.id if registered.id == row.document else "dynamic"
        self._note(f"{how}, to come back to {row.redirect_uri}")
        return registered

    async def _open(self, link: str) -> None:
        self.step = "authorization page"
        asked = Request(link, headers=(("accept", "text/html"),))
        answer = await self._send(asked, head_only=True)
        told = dict(parse_qsl(urlsplit(answer.location).query))
        if answer.status >= 400 or "error" in told:
            why = told.get("error", str(answer.status))[:200]
            raise e.SignInRefused(f"It refuses the request: {why}.")
        if "code" in told:
            self._note("it gives a code at once", "warning", "Have it ask the person first.")
        else:
            self._note(f"{link.partition('?')[0]} answers")

    async def _exchange(self, client: OwnClient, steps: Steps[Any]) -> None:
        self.step = "tokens"
        try:
            await self._follow(steps)
        except e.SignInRefused as refused:
            if refused.error == "invalid_grant":
                self._note("a made-up code is refused, as it should be")
                return
            what = refused.error or "what is no error of OAuth"
            if what in discovery.UNKNOWN_CLIENT and client.id == self.client.document:
                what = f"{what}: the server cannot fetch {client.id}"
        else:
            what = "tokens"
        raise e.SignInRefused(f"A made-up code is answered with {what}.")

    async def _follow(self, steps: Steps[T]) -> T:
        """Send what the steps ask for, and note where they are."""
        from folkmoot.mcp.client.fetch import run

        async def observed(request: Request) -> Answer:
            answer = await self._send(request)
            if request.method == "GET":
                is_resource = RESOURCE_PATH in request.url
                self.step = "resource metadata" if is_resource else "authorization server"
                if is_resource and answer.status == 200:
                    with suppress(e.MessageError):
                        found = decode_object(answer.body, LIMITS)
                        self.resource = str(found.get("resource"))[:500]
            return answer

        return await run(steps, observed)

    async def _send(self, request: Request, *, head_only: bool = False) -> Answer:
        from folkmoot.mcp.client.fetch import is_public, send

        admits = is_public if self.client.hosted else None
        return await send(request, admits=admits, head_only=head_only)


def origin(url: str) -> tuple[str, ...] | None:
    """The part of a URL that says which server it is; None for what is no URL."""
    parts = split(url)
    return parts and parts[:3]
