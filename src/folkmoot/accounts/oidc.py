"""Signing in with the accounts of a company, by OpenID Connect.

Whoever begins is sent to the company's provider, and their browser keeps a sealed *ticket*: only
that browser can come back, once and within minutes. The provider's id token says who they are: its
subject belongs to one account here for good. Their handle is looked at once, when they are new.

The operator chose the provider, and it can sign in anybody: so it is asked wherever it says that
it is, on a private network too, but no redirect is followed.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field

from folkmoot.accounts import queries, queries_credentials
from folkmoot.accounts import queries_identities as identities
from folkmoot.accounts.credentials import hash_secret
from folkmoot.accounts.limits import (
    MAX_OIDC_GROUP,
    MAX_OIDC_GROUPS,
    MAX_OIDC_SUBJECT,
    MAX_OIDC_TICKET,
    OIDC_FAILURE_SECONDS,
    OIDC_PROVIDER_SECONDS,
    OIDC_SECONDS,
    OIDC_SKEW_SECONDS,
)
from folkmoot.accounts.model import Account, Secret
from folkmoot.accounts.queries_passkeys import spend
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.oauth import discovery
from folkmoot.core.oauth.discovery import OpenIdProvider, OwnClient, Request
from folkmoot.core.scopes import OPERATING
from folkmoot.mcp.client.fetch import run, send
from folkmoot.names.grammar import parse_handle
from folkmoot.vault import SealedIds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from folkmoot.accounts.accounts import Accounts
    from folkmoot.core.ports import Clock, Sealer, Store, Tx
    from folkmoot.settings import OidcSettings

logger = logging.getLogger("folkmoot.accounts")

PURPOSE: Final = "oidc ticket"
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""By keys that the provider alone has: never `none`, and none that we have the key of."""
START_AGAIN: Final = "This sign-in was begun elsewhere, is too old, or was used. Start again."
NOT_SHOWN: Final = "Your company's provider does not show who you are. Start again."
NOT_KNOWN: Final = "Your company account belongs to nobody here. Ask whoever runs this hub."
TAKEN: Final = (
    "The handle @{}, which would be yours, belongs to another account here or is kept for one. Ask "
    "whoever runs this hub."
)
NO_HANDLE: Final = (
    "Your company account has no name that can be a handle here: 3 to 20 letters, digits and "
    "underscores, a letter first. Ask whoever runs this hub."
)


class Ticket(Secret, frozen=True, array_like=True):
    """What a browser keeps of a sign-in that it began."""

    state: str
    nonce: str
    verifier: str
    then: str
    """Where the person was going."""
    until: int


class OidcSession(Struct, frozen=True):
    """Who came back from the provider, and where they were going."""

    account: Account
    scope: str
    """Of the browser session; empty for the usual one."""
    then: str


class Oidc(Entity):
    """Signs the people of one company in."""

    store: Store
    clock: Clock
    sealer: Sealer
    accounts: Accounts
    options: OidcSettings
    _known: tuple[float, OpenIdProvider | str] | None = None
    """Until when what is believed of the provider: where it has what, or why that is not known."""
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._tickets = SealedIds(self.sealer, PURPOSE, Ticket, MAX_OIDC_TICKET)

    async def begin(self, redirect_uri: str, then: str) -> tuple[str, str]:
        """Where to send a person, and the ticket that their browser keeps meanwhile."""
        provider = await self._provider()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        until = int(self.clock.now()) + OIDC_SECONDS
        ticket = self._tickets.make(redirect_uri, Ticket(state, nonce, verifier, then, until))
        url = discovery.authorization_url(
            provider.server,
            OwnClient(self.options.client_id),
            redirect_uri=redirect_uri,
            state=state,
            nonce=nonce,
            verifier=verifier,
            scope=self.options.scopes,
        )
        return url, ticket

    async def finish(
        self, redirect_uri: str, ticket: str, pairs: Sequence[tuple[str, str]]
    ) -> OidcSession:
        """Who came back with these parameters, to a browser with this ticket."""
        now, begun = int(self.clock.now()), self._tickets.open(redirect_uri, ticket)
        if begun is None or begun.until <= now:
            raise e.SignInRefused(START_AGAIN)
        provider = await self._provider()
        server = provider.server
        code = discovery.read_code(
            pairs, issuer=server.issuer, names_itself=server.names_itself, state=begun.state
        )
        spent = hash_secret(begun.state)
        if not await self.store.write(lambda tx: spend(tx, spent, begun.until, now)):
            raise e.SignInRefused(START_AGAIN)
        own = discovery.register(
            server, "", own_id=self.options.client_id, own_secret=self.options.client_secret
        )
        steps = discovery.exchange_id(
            server,
            await run(own),
            code=code,
            redirect_uri=redirect_uri,
            verifier=begun.verifier,
        )
        id_token = await run(steps)
        keys = await send(Request(provider.jwks_uri))
        claims = await asyncio.to_thread(self._claims, id_token, keys.body, begun.nonce)
        groups = groups_in(claims.get(self.options.groups_claim))
        account = await self._account(claims, groups)
        operates = not groups.isdisjoint(map(str.lower, self.options.operators))
        return OidcSession(account, OPERATING if operates else "", begun.then)

    async def _provider(self) -> OpenIdProvider:
        """Where the provider has what.

        Strangers ask for it as often as they like: it is asked once at a time, and after a failure
        not at once again.
        """
        async with self._asking:
            known = self._known
            if known is None or known[0] <= self.clock.monotonic():
                found: OpenIdProvider | str
                try:
                    found = await run(discovery.discover_openid(self.options.issuer))
                    seconds = OIDC_PROVIDER_SECONDS
                except e.CarryError as error:
                    found, seconds = error.message, OIDC_FAILURE_SECONDS
                known = self._known = self.clock.monotonic() + seconds, found
        if isinstance(known[1], str):
            raise e.ServerUnreachable(known[1])
        return known[1]

    def _claims(self, id_token: str, keys: bytes, nonce: str) -> dict[str, Any]:
        """What a checked id token says, in a thread: the library takes its time to be loaded."""
        try:
            from joserfc import jwt
            from joserfc.jwk import KeySet

            known = KeySet.import_key_set(msgspec.json.decode(keys))
            claims = jwt.decode(id_token, known, algorithms=ALGORITHMS).claims
            own = self.options.client_id
            jwt.JWTClaimsRegistry(
                int(self.clock.now()),
                OIDC_SKEW_SECONDS,
                iss={"essential": True, "value": self.options.issuer},
                aud={"essential": True, "value": own},
                exp={"essential": True},
                nonce={"essential": True, "value": nonce},
            ).validate(claims)
            audiences, subject = claims["aud"], claims["sub"]
            is_ours = claims.get("azp", own if audiences in (own, [own]) else "") == own
            is_text = isinstance(subject, str) and 0 < len(subject) <= MAX_OIDC_SUBJECT
            if not is_ours or not is_text:
                raise ValueError  # noqa: TRY301 - refused like everything else
        # Whatever is wrong with it, its words could quote the token.
        except Exception as error:  # noqa: BLE001
            why = {"error": type(error).__name__, "claim": getattr(error, "claim", "")}
            logger.warning("an id token was refused", extra=why)
            raise e.SignInRefused(NOT_SHOWN) from None
        return claims

    async def _account(self, claims: Mapping[str, Any], groups: frozenset[str]) -> Account:
        """The account that a subject of the provider has, made at their first sign-in."""
        now, found = int(self.clock.now()), identities.Key(self.options.issuer, claims["sub"])

        async def unit(tx: Tx) -> Account | None:
            account_id = await identities.use(tx, found, groups, now)
            account = await queries.by_id(tx, account_id) if account_id else None
            if account is not None and account.suspended_at is not None:
                raise e.AccountSuspended
            return account

        async def join(tx: Tx, account: Account) -> None:
            # Nobody was told the token: what opens the account is the provider.
            await queries_credentials.remove_all(tx, account.id)
            await identities.insert(tx, found, account.id, groups, now)

        account = await self.store.write(unit)
        if account is not None:
            return account
        if not self.options.register:
            raise e.SignInRefused(NOT_KNOWN)
        handle = handle_in(claims.get(self.options.handle_claim))
        if self.accounts.reserved.awaits(handle):
            raise e.HandleTaken(TAKEN.format(handle))
        try:
            made = await self.accounts.add(handle, also=join)
        except e.HandleTaken:
            raise e.HandleTaken(TAKEN.format(handle)) from None
        return made.account


def handle_in(claim: object) -> str:
    """The handle that a claim such as `Ada.Lovelace@example.org` stands for."""
    name = claim.partition("@")[0] if isinstance(claim, str) else ""
    handle = parse_handle(re.sub(r"[.-]", "_", name[:64]))
    if handle is None:
        raise e.SignInRefused(NO_HANDLE)
    return handle


def groups_in(claim: object) -> frozenset[str]:
    """The names of groups in a claim, which is a list or one name."""
    given = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
    names = (each.lower() for each in given[:MAX_OIDC_GROUPS] if isinstance(each, str))
    return frozenset(name for name in names if 0 < len(name) <= MAX_OIDC_GROUP)
