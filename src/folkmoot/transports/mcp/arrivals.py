"""A request to `/mcp`: finds its token, its session and its account.

What comes of it is an `Exchange`, which goes with the request from here on.
"""

from __future__ import annotations

import re
from functools import partial
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from msgspec import Struct

from folkmoot.accounts.credentials import ACCESS_INVALID, BEARER, OF_APPS, hash_grant
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.policy import NOBODY
from folkmoot.mcp.server.heads import SESSION, VERSION_BYTES, head_of
from folkmoot.mcp.wire import HANDSHAKE_VERSIONS
from folkmoot.operations.call import Caller
from folkmoot.transports.connections import PEER, sign_in
from folkmoot.transports.credentials import CALLER, is_direct, read_token
from folkmoot.transports.guard import SAFE_METHODS, foreign_origin
from folkmoot.transports.limits import MAX_QUERY_PARAMETERS
from folkmoot.transports.mcp.homes import SessionElsewhere

if TYPE_CHECKING:
    import asyncio

    from starlette.types import Scope

    from folkmoot.accounts import Accounts, Credential, Identity
    from folkmoot.mcp.server.heads import Head
    from folkmoot.names import NameStyle
    from folkmoot.transports.address import Addresses
    from folkmoot.transports.connections import ConnectionPeer
    from folkmoot.transports.guard import Hosts
    from folkmoot.transports.mcp.session_counts import SessionCounts
    from folkmoot.transports.mcp.sessions import McpSession, Sessions
    from folkmoot.transports.mcp.stored_sessions import StoredSessions

REWRITTEN_KEY: Final = "folkmoot.rewritten"
"""In the scope of a request that is not as its client sent it: its headers may repeat less."""
HANDSHAKE: Final = frozenset(version.encode() for version in HANDSHAKE_VERSIONS)
TOKEN_ALONE: Final = re.compile(rb"(?:token=([A-Za-z0-9_]+))?")
OWN_BEGINS: Final = "sk_"
NO_TOKENS: Final[frozenset[str]] = frozenset()
CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "names": ("safe", "canonical"),
    "tools": ("all", "search"),
}
"""Query parameters besides the token, and the values they take."""


class Exchange(Struct, kw_only=True, eq=False):
    """The state of one request."""

    caller: Caller
    scope: Scope
    head: Head
    """The headers of the request, by one look at them."""
    shown_hash: str = ""
    """The hash of the token that the request shows, valid or not; for an app that of its grant."""
    credential: Credential | None = None
    """What authenticated the caller; None when nobody is."""
    handshake: bool = False
    """Whether the request belongs to the eras that know sessions."""
    token_invalid: bool = False
    """Whether the request, or its session, has a token that is nobody's."""
    suspended: bool = False
    """Whether that is because the token's account is suspended."""
    own_token: bool = False
    """Whether the request's token, valid or not, looks like one of a hub."""
    session: McpSession | None = None
    subscribed: tuple[str, ...] = ()
    """What its session, if it was adopted for this request, had subscribed to."""
    names: NameStyle = "safe"
    all_tools: bool = False
    search: bool = False
    """Whether the list of tools has only those that find and call the others."""
    ending: e.FolkmootError | None = None
    """Why it is ended early; None if its client has left, or the hub stops."""

    @property
    def refusal(self) -> e.TokenRefused:
        """What is told of a token that is not valid."""
        if self.suspended:
            return e.AccountSuspended()
        of_app = self.credential is not None and self.credential.is_access
        return e.TokenInvalid(ACCESS_INVALID if of_app else "")

    @property
    def credential_id(self) -> str:
        """The id of what authenticated the caller, for an app its grant; empty when nobody is."""
        return "" if self.credential is None else self.credential.lasting_id

    @property
    def leaving(self) -> asyncio.Event:
        """Set when the client has left, or nobody waits for an answer any more."""
        return self.caller.leaving

    @property
    def rewritten(self) -> bool:
        """Whether an interceptor changed the request."""
        return REWRITTEN_KEY in self.scope

    @property
    def listens(self) -> bool:
        """Whether it is the stream of a session, which answers nothing by itself."""
        return bool(self.scope["method"] == "GET")


class Query(Struct, frozen=True):
    """What the URL of a request asks for."""

    tokens: frozenset[str]
    names: NameStyle | None = None
    all_tools: bool = False
    search: bool = False
    """Whether tools are found by words instead of listed."""


def read_query(scope: Scope) -> Query:
    """The query parameters; those we do not know are not ours to judge."""
    # Most requests have nothing but their token, or nothing at all, in their URL.
    if (alone := TOKEN_ALONE.fullmatch(scope["query_string"])) is not None:
        return Query(frozenset((alone[1].decode(),)) if alone[1] else NO_TOKENS)
    try:
        pairs = parse_qsl(
            scope["query_string"].decode("latin-1"),
            keep_blank_values=True,
            max_num_fields=MAX_QUERY_PARAMETERS,
        )
    except ValueError:
        raise e.QueryInvalid("The URL has too many query parameters.") from None
    for name, value in pairs:
        if name in CHOICES and value not in CHOICES[name]:
            raise e.QueryInvalid(f"The query parameter {name} takes {' or '.join(CHOICES[name])}.")
    given: dict[str, Any] = dict(pairs)
    tokens = frozenset(value for name, value in pairs if name == "token" and value)
    tools = given.get("tools")
    return Query(tokens, given.get("names"), tools == "all", tools == "search")


class ShownToken(Struct, frozen=True, gc=False):
    """What the URL and the `Authorization` header of a request say."""

    written: bytes
    """The two, as they were written."""
    query: Query
    token_hash: str
    """The hash of the token, valid or not; empty for none."""
    is_own: bool = False
    """Whether it looks like a token of a hub."""
    is_bearer: bool = False
    """Whether it has the form of what opens an account: no other secret does it here."""
    is_apps: bool = False
    """Whether it looks like a token of an app."""


def read_shown(scope: Scope, head: Head, peer: ConnectionPeer | None) -> ShownToken:
    """What a request shows: on most connections the same each time, so the last is remembered."""
    authorization = head.first.get(b"authorization")
    written: bytes = scope["query_string"]
    if authorization is not None:
        written = b"%b\n%b" % (written, authorization)
    last: ShownToken | None = None if peer is None else peer.shown
    # Others may use the connection too, through a proxy: how long it takes tells them nothing.
    if last is not None and compare_digest(last.written, written) and not head.twice:
        return last
    query = read_query(scope)
    token = read_token(scope, query.tokens)
    shown = ShownToken(
        written,
        query,
        hash_shown(token),
        is_own=token.startswith(OWN_BEGINS),
        is_bearer=BEARER.fullmatch(token) is not None,
        is_apps=token.startswith(OF_APPS),
    )
    if peer is not None and not head.twice:
        peer.shown = shown
    return shown


def check_app(identity: Identity | None) -> Credential:
    """The access token of an app; one that is not valid is refused."""
    if identity is None or identity.account is None:
        raise e.TokenInvalid(ACCESS_INVALID)
    if identity.account.suspended_at is not None:
        raise e.AccountSuspended
    return identity.credential


def hash_shown(token: str) -> str:
    """The SHA-256 of the token that a request shows, valid or not; nothing for no token."""
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest() if token else ""


class Arrivals(Entity, kw_only=True):
    """Makes the exchange of each request; every one is authenticated by itself."""

    accounts: Accounts
    sessions: Sessions
    hosts: Hosts
    addresses: Addresses
    names: NameStyle
    public_url: str
    stored: StoredSessions
    counts: SessionCounts | None = None
    """The sessions of other nodes, where there can be any."""

    def __post_init__(self) -> None:
        self._authentication = self.accounts.authentication
        self.public_url = self.public_url.rstrip("/")
        self._may_be_direct = not self.public_url and not self.addresses.believes_proxies

    async def exchange(self, scope: Scope, gone: str = "") -> Exchange:
        """The exchange of a request whose body was read.

        It holds its session until that is left, so that a session in use is not idle. Raises
        `SessionElsewhere` if another node has its session that is not `gone`.
        """
        # The guard lets pages of other origins look; here a look is somebody's mail.
        foreign = foreign_origin(self.hosts, scope) if scope["method"] in SAFE_METHODS else None
        if foreign is not None:
            raise foreign
        head = head_of(scope)
        peer: ConnectionPeer | None = scope.get(PEER)
        shown = read_shown(scope, head, peer)
        query, shown_hash = shown.query, shown.token_hash
        identity = await self._authentication.by_hash(shown_hash) if shown.is_bearer else None
        if shown.is_apps:
            # Before its session is looked for: a client whose session is not found drops that, and
            # one that is not authorized gets its next token.
            shown_hash = hash_grant(check_app(identity).lasting_id)
        shown_id = "" if identity is None else identity.credential.lasting_id
        session_id, version = head.first.get(SESSION), head.first.get(VERSION_BYTES)
        # Whoever names no version speaks one of the eras that know sessions.
        handshake = version is None or version in HANDSHAKE
        session: McpSession | None = None
        subscribed: tuple[str, ...] = ()
        address = (peer.address if peer is not None else "") or self.addresses.of(scope)
        if session_id is not None and handshake:
            named = session_id.decode("latin-1")
            try:
                session = self.sessions.enter(named, shown_hash, shown_id)
            except e.SessionNotFound:
                room = partial(self._make_room, address)
                try:
                    session, subscribed = await self.stored.adopt(
                        named, shown_hash, shown_id, room, gone
                    )
                except SessionElsewhere:
                    account = None if identity is None else identity.account
                    if account is not None and account.suspended_at is None:
                        scope[CALLER] = account.id
                        sign_in(scope, account.id)
                    raise
        is_bound = session is not None and bool(session.token_id)
        try:
            if session is not None and is_bound:
                identity = await self._authentication.by_id(session.credential_id)
            account = None if identity is None else identity.account
            suspended = account is not None and account.suspended_at is not None
            if suspended:
                account = None
            if account is not None and peer is not None and peer.account != account.id:
                peer.connections.sign_in(peer, account.id)
            if session_id is None and handshake:
                await self._make_room(address, "" if account is None else account.id)
        except BaseException:
            if session is not None:
                self.sessions.leave(session)
            raise
        credential = identity.credential if identity is not None and account is not None else None
        caller = Caller(
            account=account,
            principal=NOBODY if identity is None or account is None else identity.principal,
            address=address,
            base_url=self.base_url(scope),
            is_direct=partial(is_direct, scope) if self._may_be_direct else None,
            signed_in=is_bound and account is not None,
            confirm=partial(self._confirm, credential),
        )
        if credential is not None:
            caller.credential_id = credential.parent_id or credential.id
        if session is not None:
            session.owner = account.id if account is not None else ""
            # A session whose own token was valid until now ends with that token.
            caller.binds = account is None or bool(session.token_id)
        return Exchange(
            caller=caller,
            scope=scope,
            head=head,
            shown_hash=shown_hash,
            credential=credential,
            handshake=handshake,
            token_invalid=(is_bound or bool(shown_hash)) and account is None,
            suspended=suspended,
            own_token=shown.is_own,
            session=session,
            subscribed=subscribed,
            names=query.names or self.names,
            all_tools=query.all_tools,
            search=query.search,
        )

    def base_url(self, scope: Scope) -> str:
        """What whoever asks has reached the hub at."""
        if self.public_url:
            return self.public_url
        host = head_of(scope).first.get(b"host", b"").decode("latin-1")
        return f"{scope['scheme']}://{host}"

    async def _confirm(self, credential: Credential | None) -> bool:
        lasting_id = "" if credential is None else credential.lasting_id
        if await self.accounts.still_valid(lasting_id) is not None:
            return True
        if credential is not None and credential.is_access:
            raise e.TokenInvalid(ACCESS_INVALID)
        return False

    async def in_session(self, scope: Scope, token: str) -> str:
        """The id of the account that the session of a request is bound to; empty for none."""
        for name, value in scope["headers"]:
            if name == SESSION:
                session_id = value.decode("latin-1")
                found = self.sessions.credential_of(session_id, hash_shown(token))
                if not found and session_id not in self.sessions:
                    found = await self.stored.credential_of(session_id, hash_shown(token))
                account = await self.accounts.still_valid(found)
                return "" if account is None else account.id
        return ""

    async def is_valid(self, exchange: Exchange) -> bool:
        """Whether the credential of an exchange is still valid; always for strangers."""
        session = exchange.session
        if session is not None and session.token_id:
            return await self.accounts.still_valid(session.credential_id) is not None
        if not exchange.shown_hash:
            return True
        return await self.accounts.still_valid(exchange.credential_id) is not None

    async def _make_room(self, address: str, account_id: str) -> str:
        """Let whoever has an account, or has none at this address, open one more session."""
        sessions, of_key, of_all = self.sessions, 0, 0
        if self.counts is not None:
            of_key, of_all = await self.counts.elsewhere(account_id, address)
        if not account_id:
            sessions.check_room(address, of_key)
        else:
            if self.counts is not None and sessions.is_over(account_id, of_key):
                await self._end_one(self.counts, account_id)
            while (session := sessions.in_excess(account_id)) is not None:
                await self.stored.close(session, by_client=False)
        while True:
            session = sessions.to_make_room(stranger=not account_id, elsewhere=of_all)
            if session is None:
                return address
            await self.stored.close(session, by_client=False)

    async def _end_one(self, counts: SessionCounts, account_id: str) -> None:
        """End a session of an account that has enough on all nodes, here if there is one unused."""
        session = self.sessions.longest_unused(account_id)
        if session is not None:
            await self.stored.close(session, by_client=False)
        else:
            await counts.end_elsewhere(account_id)
