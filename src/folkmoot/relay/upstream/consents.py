"""Consents: whose tokens go with the requests to servers that want their own sign-in.

A person signs in at the server's own authorization server and comes back with a code. The tokens
for it are sealed in the database for that server and person: a row that is moved elsewhere does not
open. They are renewed at four fifths of their life, and when the server takes them no more, by one
process of the hub at a time, since many servers take each refresh token only once.

Where a consent is `shared`, its holder is nobody in particular: an empty name.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from folkmoot.accounts import queries_consents as queries
from folkmoot.accounts.limits import SIGN_IN_SECONDS
from folkmoot.accounts.model import read_change
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.events import ACCOUNTS, CONSENTS, about
from folkmoot.core.limits import MAX_OAUTH_PARAMETER
from folkmoot.core.oauth import discovery
from folkmoot.core.oauth.challenges import INSUFFICIENT_SCOPE
from folkmoot.core.oauth.discovery import AuthorizationServer, OwnClient, Tokens
from folkmoot.core.oauth.metadata import CALLBACK_PATH, CLIENT_PATH
from folkmoot.core.strict import learnt
from folkmoot.relay.upstream.authorization import find, run
from folkmoot.relay.upstream.secrets import resolve
from folkmoot.settings.backends import SecretReference
from folkmoot.taskgroups import uninterrupted, waited
from folkmoot.telemetry.redaction import redactor
from folkmoot.vault import SealedIds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from folkmoot.accounts.model import Consent
    from folkmoot.accounts.queries_consents import ConsentRow
    from folkmoot.core.ports import Clock, Event, Sealer, Store, Tx
    from folkmoot.settings.backends import BackendSpec

logger = logging.getLogger("folkmoot.backend")

TOKENS: Final = "consent"
PENDING: Final = "consent_pending"
CLIENT: Final = "oauth_registration"
STATE: Final = "consent_state"
TICKET: Final = "consent_ticket"
CONNECT: Final = "/connect/"
LEASE_SECONDS: Final = 30
"""Longer than the renewal that it is for can take."""
LOOK_AGAIN_SECONDS: Final = 0.2
LOOK_SECONDS: Final = 10.0
"""After how long it is looked whether a person has consented, though nobody said so."""
RENEWED_AT: Final = 0.8
"""The part of a token's life after which it is renewed."""
MOST_KNOWN: Final = 4096
"""Consents whose tokens are kept at hand."""


@learnt
class Held(Struct, frozen=True):
    """What is sealed of a consent."""

    url: str
    """The server that the tokens are for, which its settings can change."""
    server: AuthorizationServer
    client: OwnClient
    tokens: Tokens
    scope: str
    """What was asked for."""
    since: int
    """When the tokens came."""
    steps: int = 0
    """How often the server wanted more than was asked for before."""

    __repr__ = object.__repr__

    @property
    def renew_at(self) -> float | None:
        """When the tokens are to be renewed; None where that shows only when they are refused."""
        seconds = self.tokens.seconds
        return self.since + RENEWED_AT * seconds if seconds and self.tokens.refresh else None

    @property
    def expires_at(self) -> int | None:
        """When the access token ends, where that is known."""
        return self.since + self.tokens.seconds if self.tokens.seconds else None


@learnt
class Pending(Struct, frozen=True):
    """What is sealed of a sign-in that was begun."""

    url: str
    server: AuthorizationServer
    client: OwnClient
    verifier: str
    scope: str
    redirect_uri: str
    until: int
    steps: int

    __repr__ = object.__repr__


@learnt
class SealedClient(Struct, frozen=True):
    """What is sealed of a registration: it holds for one way back to the hub."""

    redirect_uri: str
    client: OwnClient


class State(Struct, frozen=True, array_like=True):
    """What `state` holds; it opens only for the session of the browser that began."""

    namespace: str
    account_id: str
    nonce: bytes


class Ticket(Struct, frozen=True, array_like=True):
    """What a link to sign in holds; it opens only for the account that it was made for."""

    namespace: str
    scope: str
    """What a call needs beyond what was asked for before."""
    until: int


class Consents(Entity):
    """Gets, keeps and renews the tokens for servers behind the hub."""

    store: Store
    clock: Clock
    sealer: Sealer
    spec_of: Callable[[str], BackendSpec | None]
    """The settings of a server, by its namespace."""
    environ: Mapping[str, str]
    url: str
    """Where people reach the hub."""
    public: bool = False
    """Whether the internet does too."""
    on_change: Callable[[str, str, str], None] = lambda _namespace, _holder, _change: None
    """Told of each consent that was given, or is no more; `*` is every namespace."""
    _known: dict[tuple[str, str], Held] = {}
    _changes: int = 0
    """How often consents changed, or may have."""
    _renewing: WeakValueDictionary[tuple[str, str], asyncio.Lock] = msgspec.field(
        default_factory=WeakValueDictionary
    )
    _news: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._states = SealedIds(self.sealer, STATE, State, MAX_OAUTH_PARAMETER)
        self._tickets = SealedIds(self.sealer, TICKET, Ticket, 2 * MAX_OAUTH_PARAMETER)
        self.store.bus.listen(CONSENTS, self._changed)
        self.store.bus.listen(ACCOUNTS, self._account_changed)
        self.store.bus.listen_doubt(self._doubt)

    def link(self, namespace: str, account_id: str, scope: str = "") -> str:
        """Where an account, and no other, signs in to a server."""
        until = int(self.clock.now()) + SIGN_IN_SECONDS
        ticket = Ticket(namespace, discovery.united(scope), until)
        return f"{self.url}{CONNECT}{self._tickets.make(account_id, ticket)}"

    def opened(self, ticket: str, account_id: str) -> tuple[str, str]:
        """The server that a link is for, and what a call needs beyond what was asked for."""
        found = self._tickets.open(account_id, ticket)
        if found is None or found.until <= self.clock.now():
            raise e.SignInRefused("This link is not for your account, or is too old.")
        return found.namespace, found.scope

    async def begin(
        self, namespace: str, account_id: str, session: str, base: str, scope: str = ""
    ) -> str:
        """Where to send a person who is to consent, in the browser `session` that comes back.

        `base` is where that browser has the hub, and `scope` what a call needed beyond what was
        asked for before.
        """
        spec = self.spec(namespace)
        holder = spec.owner(account_id)
        there, challenge = await find(spec)
        redirect_uri = f"{base}{CALLBACK_PATH}"
        client = await self._client(spec, there, redirect_uri)
        wanted, steps = discovery.scope_for(there, challenge, " ".join(spec.scopes)), 0
        if scope:
            held = await self._found(spec, holder)
            steps = 1 if held is None else held.steps + 1
            wanted = discovery.united(wanted if held is None else held.scope, scope)
        now, verifier = int(self.clock.now()), secrets.token_urlsafe(48)
        until = now + SIGN_IN_SECONDS
        pending = Pending(spec.url, there, client, verifier, wanted, redirect_uri, until, steps)
        state = self._states.make(session, State(namespace, account_id, secrets.token_bytes(16)))
        sealed = self.sealer.seal(PENDING, state, msgspec.msgpack.encode(pending))
        await self.store.write(
            lambda tx: queries.begin(tx, namespace, holder, account_id, sealed, now)
        )
        names = {"redirect_uri": redirect_uri, "state": state, "verifier": verifier}
        return discovery.authorization_url(there, client, scope=wanted, **names)

    async def finish(self, pairs: Sequence[tuple[str, str]], account_id: str, session: str) -> str:
        """Take the tokens of a person who came back with these parameters; the namespace."""
        given = [value for name, value in pairs if name == "state"]
        state = self._states.open(session, given[0]) if len(given) == 1 else None
        if state is None or state.account_id != account_id:
            raise _started_elsewhere()
        namespace = state.namespace
        spec = self.spec(namespace)
        holder, now = spec.owner(account_id), int(self.clock.now())
        row = await self._row(namespace, holder)
        try:
            opened = self.sealer.open(PENDING, given[0], row.pending if row is not None else "")
        except e.SealBroken:
            raise _started_elsewhere() from None
        pending = msgspec.msgpack.decode(opened, type=Pending)
        if row is None or pending.until <= now or pending.url != spec.url:
            raise _started_elsewhere()
        there = pending.server
        code = discovery.read_code(
            pairs, issuer=there.issuer, names_itself=there.names_itself, state=given[0]
        )
        if not await self.store.write(
            lambda tx: queries.take_pending(tx, namespace, holder, row.pending)
        ):
            raise _started_elsewhere()
        steps = discovery.exchange(
            there,
            pending.client,
            code=code,
            redirect_uri=pending.redirect_uri,
            verifier=pending.verifier,
        )
        tokens = await run(spec, steps)
        held = Held(spec.url, there, pending.client, tokens, pending.scope, now, pending.steps)
        sealed = self._seal(namespace, holder, held)

        async def unit(tx: Tx) -> bool:
            return await queries.put(
                *(tx, namespace, holder),
                account_id=account_id,
                issuer=there.issuer,
                scope=pending.scope,
                tokens=sealed,
                now=now,
                expires_at=held.expires_at,
            )

        if not await self.store.write(unit):
            raise _started_elsewhere()
        return namespace

    async def held(self, namespace: str, holder: str, refused: str = "") -> Held:
        """The tokens for a call, renewed where it is time or one was `refused`.

        Raises `ConsentNeeded` where its person has to consent first.
        """
        spec, key, changes = self.spec(namespace), (namespace, holder), self._changes
        held = self._known.get(key)
        if held is None or not _fits(spec, held):
            held, _ = await self._open(spec, holder)
        if self._is_due(held, refused):
            self._known.pop(key, None)
            lock = self._renewing.setdefault(key, asyncio.Lock())
            async with lock:
                # What the server gives for a refresh token must not be lost with its caller.
                held = await uninterrupted(self._renewed(spec, holder, refused))
        if changes == self._changes:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[key] = held
        return held

    async def version(self, namespace: str, account_id: str) -> int:
        """How often the tokens of a person have changed."""
        row = await self._row(namespace, self.spec(namespace).owner(account_id))
        return 0 if row is None else row.version

    async def consented(
        self, namespace: str, account_id: str, version: int, seconds: float
    ) -> bool:
        """Wait until a person consents, since that version; whether they did in time."""
        holder = self.spec(namespace).owner(account_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    news, row = self._news, await self._row(namespace, holder)
                    if row is not None and row.tokens and row.version > version:
                        return True
                    await waited(news, LOOK_SECONDS)
        return False

    async def of(self, namespace: str, account_id: str) -> Consent | None:
        """The consent that the calls of an account are made with; one that lapsed too."""
        holder = self.spec(namespace).owner(account_id)
        return await self.store.read(lambda tx: queries.standing(tx, namespace, holder))

    async def forget(self, namespace: str, account_id: str) -> bool:
        """Forget a consent, here and as well as it can be at the server; whether there was one."""
        spec = self.spec(namespace)
        holder = spec.owner(account_id)
        held = await self._found(spec, holder)
        if not await self.store.write(lambda tx: queries.remove(tx, namespace, holder)):
            return False
        if held is not None:
            try:
                await run(spec, discovery.revoke(held.server, held.client, held.tokens))
            except e.CarryError as error:
                why = {"backend": namespace, "why": error.message}
                logger.warning("tokens could not be revoked at a server", extra=why)
        return True

    def spec(self, namespace: str) -> BackendSpec:
        """The settings of a server that wants its own sign-in."""
        spec = self.spec_of(namespace)
        if spec is None or spec.auth != "oauth":
            raise e.NotFound(f"There is no server {namespace} that wants its own sign-in.")
        return spec

    def _changed(self, event: Event) -> None:
        namespace, change = event.data["namespace"], event.data["change"]
        spec = self.spec_of(namespace)
        holder = "" if spec is not None and spec.shared else about(event)
        self._changes += 1
        self._known.pop((namespace, holder), None)
        self.on_change(namespace, holder, change)
        self._news.set()
        self._news = asyncio.Event()

    def _account_changed(self, event: Event) -> None:
        if read_change(event).change == "deleted":
            # Their consents, and those that they gave for everyone, went with them.
            self._doubt()
            self.on_change("*", about(event), "removed")

    def _doubt(self) -> None:
        self._changes += 1
        self._known.clear()

    def _is_due(self, held: Held, refused: str) -> bool:
        """Whether tokens are to be renewed before they are shown."""
        if refused:
            return held.tokens.access == refused
        return held.renew_at is not None and held.renew_at <= self.clock.now()

    async def _renewed(self, spec: BackendSpec, holder: str, refused: str) -> Held:
        """The tokens, once we or another process have renewed them."""
        namespace = spec.namespace
        while True:
            held, row = await self._open(spec, holder)
            if not self._is_due(held, refused):
                return held
            now, version = int(self.clock.now()), row.version
            until = now + LEASE_SECONDS
            if await self.store.write(
                lambda tx: queries.lease(tx, namespace, holder, version, now, until)  # noqa: B023
            ):
                return await self._renew(spec, holder, held, version, refused)
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def _renew(
        self, spec: BackendSpec, holder: str, held: Held, version: int, refused: str
    ) -> Held:
        namespace, now = spec.namespace, int(self.clock.now())
        try:
            if not held.tokens.refresh:
                raise e.SignInRefused("There is no refresh token.", "invalid_grant")
            tokens = await run(spec, discovery.refresh(held.server, held.client, held.tokens))
        except e.CarryError as error:
            why = error.error if isinstance(error, e.SignInRefused) else ""
            if why == "invalid_grant" or why in discovery.UNKNOWN_CLIENT:
                await self._lapse(namespace, holder, version, held.server.issuer, why)
                raise e.ConsentNeeded(namespace) from None
            await self.store.write(lambda tx: queries.release(tx, namespace, holder, version))
            if refused or (held.expires_at or 0) <= now:
                raise
            # It is good for a while yet.
            return held
        fresh = msgspec.structs.replace(held, tokens=tokens, since=now)
        sealed = self._seal(namespace, holder, fresh)
        if not await self.store.write(
            lambda tx: queries.renew(tx, namespace, holder, version, sealed, fresh.expires_at)
        ):
            # The person took it back meanwhile, or consented anew.
            return (await self._open(spec, holder))[0]
        return fresh

    async def _lapse(
        self, namespace: str, holder: str, version: int, issuer: str, why: str
    ) -> None:
        async def unit(tx: Tx) -> None:
            await queries.lapse(tx, namespace, holder, version)
            if why in discovery.UNKNOWN_CLIENT:
                await queries.forget_client(tx, issuer)

        await self.store.write(unit)

    async def _client(
        self, spec: BackendSpec, there: AuthorizationServer, redirect_uri: str
    ) -> OwnClient:
        """What the hub is to an authorization server; one registration serves all."""
        document = f"{self.url}{CLIENT_PATH}" if self.public else ""
        steps = discovery.register(
            there,
            redirect_uri,
            document=document,
            own_id=spec.client_id,
            own_secret=self._secret(spec),
        )
        if spec.client_id or (document and there.documents):
            return await run(spec, steps)
        issuer, now = there.issuer, self.clock.now()
        sealed = await self.store.read(lambda tx: queries.client_at(tx, issuer))
        if sealed is not None:
            opened = self.sealer.open(CLIENT, issuer, sealed)
            known = msgspec.msgpack.decode(opened, type=SealedClient)
            is_over = 0 < known.client.until <= now + SIGN_IN_SECONDS
            if known.redirect_uri == redirect_uri and not is_over:
                return known.client
        client = await run(spec, steps)
        made = msgspec.msgpack.encode(SealedClient(redirect_uri, client))
        kept = self.sealer.seal(CLIENT, issuer, made)
        await self.store.write(lambda tx: queries.put_client(tx, issuer, kept))
        return client

    def _secret(self, spec: BackendSpec) -> str:
        given = spec.client_secret
        if isinstance(given, SecretReference):
            given = given.around(resolve(given, self.environ, "client_secret"))
        redactor.hide(given)
        return given

    async def _row(self, namespace: str, holder: str) -> ConsentRow | None:
        return await self.store.read(lambda tx: queries.find(tx, namespace, holder))

    async def _found(self, spec: BackendSpec, holder: str) -> Held | None:
        """What is held of a consent, if there is one."""
        try:
            return (await self._open(spec, holder))[0]
        except e.ConsentNeeded:
            return None

    async def _open(self, spec: BackendSpec, holder: str) -> tuple[Held, ConsentRow]:
        row = await self._row(spec.namespace, holder)
        if row is None or not row.tokens:
            raise e.ConsentNeeded(spec.namespace)
        opened = self.sealer.open(TOKENS, f"{spec.namespace}\0{holder}", row.tokens)
        held = msgspec.msgpack.decode(opened, type=Held)
        if not _fits(spec, held):
            raise e.ConsentNeeded(spec.namespace)
        _hide(held.tokens)
        return held, row

    def _seal(self, namespace: str, holder: str, held: Held) -> str:
        _hide(held.tokens)
        return self.sealer.seal(TOKENS, f"{namespace}\0{holder}", msgspec.msgpack.encode(held))


class PersonTokens(Entity):
    """The tokens of one person for one server, for the requests of a link of theirs."""

    consents: Consents
    namespace: str
    holder: str
    _held: Held | None = None

    async def token(self, refused: str = "") -> str:
        """The token to show; another than the one that the server `refused`."""
        self._held = await self.consents.held(self.namespace, self.holder, refused)
        return self._held.tokens.access

    def check_scope(self, challenges: Sequence[str]) -> None:
        """Raise what has to be consented to, or that consent would not help."""
        challenge, held = discovery.read_challenge(challenges), self._held
        if held is not None and challenge.error == INSUFFICIENT_SCOPE:
            discovery.step_up(held.scope, challenge, held.steps)
            raise e.ConsentNeeded(self.namespace, challenge.scope)


def _fits(spec: BackendSpec, held: Held) -> bool:
    """Whether tokens are for the server, and the issuer, that their person saw."""
    trusted = spec.trusted_issuers
    return held.url == spec.url and (not trusted or held.server.issuer in trusted)


def _hide(tokens: Tokens) -> None:
    """Keep tokens out of the log, whatever a server says."""
    redactor.hide(tokens.access, *([tokens.refresh] if tokens.refresh else []))


def _started_elsewhere() -> e.SignInRefused:
    return e.SignInRefused(
        "This sign-in was not begun here, is too old, or was ended before. Start again."
    )
