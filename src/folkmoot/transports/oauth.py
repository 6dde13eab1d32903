"""The hub as an OAuth 2.1 authorization server: what apps ask without a person.

Any page and any program can ask here, without a cookie: what is answered depends on the secrets in
the request alone. They are too long to be guessed, and a wrong one costs a look-up; so nothing but
what is stored is counted by address, which the people of one assistant share. The pages where a
person consents are at `/authorize` and `/device`, and decide over `/v1`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.routing import Route

from folkmoot.accounts.model import AppClient
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.oauth import metadata, scopes, tokens
from folkmoot.core.oauth.authorize import is_ours
from folkmoot.core.oauth.challenges import BASIC
from folkmoot.core.oauth.clients import CODE_GRANT, DEVICE_GRANT, Client, is_document_id
from folkmoot.core.oauth.metadata import OPENID_PATH, RESOURCE_PATH, SERVER_PATH
from folkmoot.transports.answers import JsonResponse, refused

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from folkmoot.accounts.apps import Apps
    from folkmoot.accounts.clients import Clients
    from folkmoot.accounts.devices import Devices
    from folkmoot.core.oauth.tokens import TokenRequest
    from folkmoot.core.ports import Clock
    from folkmoot.ratelimits import RateLimits
    from folkmoot.transports.bodies import Locate

KEYS_PATH: Final = "/.well-known/jwks.json"
DEVICE: Final = "device"
"""The limit that counts requests for codes of devices, and what else strangers have fetched."""
UNSTORED: Final = {"cache-control": "no-store", "pragma": "no-cache"}
Answering = Callable[[Request], Awaitable["Response"]]


class OAuth(Entity, kw_only=True):
    """The endpoints of one hub."""

    apps: Apps
    devices: Devices
    limits: RateLimits
    locate: Locate
    clients: Clients
    clock: Clock
    public_url: str
    key_set: Callable[[], Awaitable[dict[str, Any]]]
    """The keys that check the hub's receipts."""

    def routes(self) -> list[Route]:
        """Where they are; metadata in every form that clients look for."""
        looked = {
            RESOURCE_PATH: self.resource,
            f"{RESOURCE_PATH}/mcp": self.resource,
            SERVER_PATH: self.server,
            f"{SERVER_PATH}/mcp": self.server,
            OPENID_PATH: self.server,
            KEYS_PATH: self.keys,
            f"/mcp{OPENID_PATH}": self.server,
            **({metadata.CLIENT_PATH: self.client} if self.public_url else {}),
        }
        asked = {
            "/register": self.register,
            "/token": self.token,
            "/revoke": self.revoke,
            "/device_authorization": self.device,
        }
        return [
            *(Route(path, _open(answer, "GET")) for path, answer in looked.items()),
            *(Route(path, _open(answer, "POST")) for path, answer in asked.items()),
        ]

    def issuer(self, request: Request) -> str:
        """The hub's name, as whoever asks has reached it."""
        return self.public_url or f"{request.url.scheme}://{request.headers.get('host', '')}"

    async def resource(self, request: Request) -> Response:
        """RFC 9728: which server gives tokens for `/mcp`."""
        issuer = self.issuer(request)
        told = metadata.protected_resource(f"{issuer}/mcp", issuer, scopes.GRANTABLE)
        return JsonResponse(told)

    async def server(self, request: Request) -> Response:
        """RFC 8414: what this server can do."""
        told = metadata.authorization_server(
            self.issuer(request),
            scopes.GRANTABLE,
            documents=self.clients.fetch is not None,
        )
        return JsonResponse(told)

    async def keys(self, _: Request) -> Response:
        """RFC 7517: what checks the receipts of decisions."""
        return JsonResponse(await self.key_set())

    async def client(self, _: Request) -> Response:
        """What the hub is to the authorization servers of servers behind it."""
        return JsonResponse(metadata.own_client(self.public_url))

    async def register(self, request: Request) -> Response:
        """RFC 7591: give an app an id, which holds what it says of itself."""
        body = await request.body()
        made = self.clients.registrations.register(body, self.clock.now())
        return JsonResponse(made, 201, UNSTORED)

    async def token(self, request: Request) -> Response:
        """A pair of tokens for a code, or for the refresh token of the last pair."""
        asked, client = await self._asked(request)
        tokens.check_grant(asked)
        if asked.grant_type == CODE_GRANT:
            try:
                pair = await self.apps.exchange(
                    asked.code,
                    client_id=client.id,
                    redirect_uri=asked.redirect_uri,
                    challenge_of=partial(tokens.verified, verifier=asked.code_verifier),
                    resource=asked.resource,
                )
            except e.GrantInvalid:
                await self._check_document(request, client)
                raise
        elif asked.grant_type == DEVICE_GRANT:
            pair = await self.devices.exchange(asked.device_code, client_id=client.id)
        else:
            pair = await self.apps.refresh(
                asked.refresh_token, client_id=client.id, scope=asked.scope
            )
        return JsonResponse({**asdict(pair), "token_type": "Bearer"}, 200, UNSTORED)

    async def _check_document(self, request: Request, client: Client) -> None:
        """Tell who looks for why nobody can sign in that the app's document cannot be read."""
        if client.document:
            with suppress(e.RateLimited):
                await self.limits.take(DEVICE, self.locate(request.scope))
                await self.clients.find(client.id)

    async def device(self, request: Request) -> Response:
        """RFC 8628: codes for a program whose person decides in a browser elsewhere.

        Each is kept until it is used or too old, so those that one address asks for are counted.
        """
        asked, client = await self._asked(request)
        issuer = self.issuer(request)
        resource = f"{issuer}/mcp"
        if asked.resource and not is_ours(asked.resource, resource, issuer):
            raise e.OAuthError("invalid_target", f"The resource must be {resource}.")
        words = " ".join(scopes.asked(asked.scope))
        try:
            await self.limits.take(DEVICE, self.locate(request.scope))
        except e.RateLimited as limited:
            return refused(limited)
        client = await self.clients.find(client.id)
        made = await self.devices.begin(
            AppClient(client.id, client.name, client.host, resource), words
        )
        where = f"{issuer}/device"
        told = {
            **asdict(made),
            "verification_uri": where,
            "verification_uri_complete": f"{where}?user_code={made.user_code}",
        }
        return JsonResponse(told, 200, UNSTORED)

    async def revoke(self, request: Request) -> Response:
        """RFC 7009: end what a token came from. An unknown one has ended already."""
        asked, client = await self._asked(request)
        await self.apps.revoke(asked.token, client_id=client.id)
        return JsonResponse({}, 200, UNSTORED)

    async def _asked(self, request: Request) -> tuple[TokenRequest, Client]:
        """What an app asks for, once the app has shown who it is.

        One that publishes a document has no secret: what it asks with must be its own, and that is
        checked later. So what strangers have the hub fetch is counted, and apps renew their tokens
        while the host of theirs is away.
        """
        asked = tokens.read(
            await request.body(),
            request.headers.get("content-type", ""),
            request.headers.get("authorization"),
        )
        if is_document_id(asked.client_id):
            client = Client(asked.client_id, "", (), document=True)
        else:
            client = await self.clients.find(asked.client_id)
        if not self.clients.registrations.authenticated(client, asked.client_secret):
            raise e.OAuthError("invalid_client", "The app's secret is wrong.", 401)
        return asked, client


class Endpoint(Entity):
    """One of them, for pages of every origin too."""

    answer: Answering
    method: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the one method that there is; what is refused is told as OAuth has it."""
        if scope["method"] == self.method:
            try:
                response = await self.answer(Request(scope, receive))
            except e.OAuthError as error:
                told = {"www-authenticate": BASIC} if error.status == 401 else {}
                response = JsonResponse(error.body(), error.status, UNSTORED | told)
        else:
            words = f"This address answers only to {self.method}."
            response = refused(e.MethodNotAllowed(words, allow=self.method))
        await response(scope, receive, send)


def _open(answer: Answering, method: str) -> ASGIApp:
    return CORSMiddleware(
        Endpoint(answer, method),
        allow_origins=("*",),
        allow_methods=(method,),
        allow_headers=("*",),
        expose_headers=("www-authenticate", "retry-after"),
    )
