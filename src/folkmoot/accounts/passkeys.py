"""Passkeys: a person signs in with what their device keeps, and shows that they are there.

Whatever a passkey signs is a *challenge*: the digest of a sealed *ticket* and of what it is for. A
ticket is good for minutes and is spent by its first use. So nothing is kept for those who only ask
for one, and an answer fits no other page, account, purpose or decision.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from base64 import b64decode, b64encode, urlsafe_b64encode
from functools import cache
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from folkmoot.accounts import queries_credentials as credentials
from folkmoot.accounts import queries_passkeys as queries
from folkmoot.accounts.authentication import audit_credential
from folkmoot.accounts.credentials import TOKEN, hash_of, hash_recovery_code, hash_secret
from folkmoot.accounts.limits import (
    MAX_LABEL,
    MAX_PASSKEY_ANSWER,
    MAX_PASSKEY_ID,
    MAX_PASSKEY_TICKET,
    MAX_PASSKEYS,
    PASSKEY_SECONDS,
    PASSKEY_SIGN_IN_SECONDS,
)
from folkmoot.accounts.model import Account, Credential, Decision, Passkey
from folkmoot.accounts.queries import by_id as account_by_id
from folkmoot.accounts.queries import secrets_of
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.scopes import WHOLE
from folkmoot.core.scopes import scope as scope_of
from folkmoot.vault import SealedIds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from folkmoot.core.ports import Clock, Sealer, Store, Tx
    from folkmoot.quotas import Quotas

ALGORITHMS: Final = (-8, -7, -257)
"""EdDSA, ES256 and RS256, as COSE numbers them."""
REQUIRED: Final = "required"
PURPOSE: Final = "passkey ticket"
ONLY_PEOPLE: Final = "Only a person can add a passkey, in a browser where they are signed in."
SIGN_IN_AGAIN: Final = (
    "Sign out and in again first. A passkey can be added in the first ten minutes after signing "
    "in, so that nobody adds one in a browser that you left open."
)
ENDS: Final = (
    "You signed in with a token that is limited or expires, so you cannot add a passkey. Sign in "
    "with a token that is not."
)
LAST: Final = (
    "This is your last passkey. Give one of your tokens or your recovery code, to show that you "
    "can still sign in without it."
)
NEEDS_TLS: Final = (
    "Passkeys need https, or a hub on this computer at the name localhost. Sign in with a link "
    "from 'folkmoot open', or with a token."
)

NONE_HERE: Final = "You have no passkey here. Add one in your account first."

Purpose: TypeAlias = Literal["add", "sign_in", "presence"]


class Ticket(Struct, frozen=True, array_like=True):
    """What makes a challenge unlike any other, and when it is over."""

    nonce: bytes
    until: int


class Challenge(Struct, frozen=True):
    """What a page passes on to the browser, and the ticket it gives back with the answer."""

    ticket: str
    options: dict[str, Any]


class Site(Struct, frozen=True):
    """The hub as a browser knows it: its origin, and the name that its passkeys belong to."""

    origin: str
    rp_id: str

    @classmethod
    def at(cls, base_url: str) -> Site:
        """The site at an address; refused where browsers have no passkeys."""
        if not has_passkeys(base_url):
            raise e.PasskeyUnusable(NEEDS_TLS)
        origin = origin_of(base_url)
        return cls(origin, urlsplit(origin).hostname or "")


def origin_of(url: str) -> str:
    """The origin of an address as browsers spell it: the name in ASCII, no port that is usual."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host.isascii():
        host = host.encode("idna").decode()
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme.lower())
    port = "" if parts.port in (None, usual) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}".lower()


def has_passkeys(base_url: str) -> bool:
    """Whether browsers have passkeys at an address: it is a name, with TLS or of this machine."""
    parts = urlsplit(base_url.lower())
    host = parts.hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return parts.scheme == "https"
    return False


class Response(Struct, frozen=True, rename="camel"):
    """What a browser answers, as far as it must be known before a library reads it."""

    client_data_json: str = field(name="clientDataJSON")
    user_handle: str | None = None


class Answered(Struct, frozen=True):
    id: str
    response: Response


class Passkeys(Entity):
    """The passkeys of accounts."""

    store: Store
    clock: Clock
    quotas: Quotas
    sealer: Sealer

    def __post_init__(self) -> None:
        self._tickets = SealedIds(self.sealer, PURPOSE, Ticket, MAX_PASSKEY_TICKET)

    async def list(self, account: Account) -> list[Passkey]:
        """The passkeys of an account, the oldest first."""
        return await self.store.read(lambda tx: queries.of_account(tx, account.id))

    async def begin_adding(self, account: Account, by: str, base_url: str) -> Challenge:
        """What a browser makes a passkey from; `by` is its session."""
        site, now = Site.at(base_url), int(self.clock.now())

        async def query(tx: Tx) -> list[str]:
            await self._check_adding(tx, account, by, now)
            return await queries.credential_ids(tx, account.id, site.rp_id)

        known = await self.store.read(query)
        ticket, challenge = self._challenge("add", site, account.id, by)
        options = {
            "rp": {"id": site.rp_id, "name": "Folkmoot"},
            "user": {
                "id": encoded(account.id.encode()),
                "name": account.handle,
                "displayName": account.display_name,
            },
            "challenge": challenge,
            "pubKeyCredParams": [{"type": "public-key", "alg": each} for each in ALGORITHMS],
            "timeout": PASSKEY_SECONDS * 1000,
            "excludeCredentials": descriptors(known),
            "authenticatorSelection": {
                "residentKey": REQUIRED,
                "requireResidentKey": True,
                "userVerification": REQUIRED,
            },
            "attestation": "none",
        }
        return Challenge(ticket, options)

    async def add(
        self, account: Account, by: str, base_url: str, name: str, ticket: str, answer: str
    ) -> Passkey:
        """Keep the passkey that a browser made; without a name it is called as the browser is."""
        site, now = Site.at(base_url), int(self.clock.now())
        name = check_name(name) if name.strip() else ""
        until, challenge = self._expected("add", site, account.id, ticket, by)
        self.quotas.check_disk()
        key, public_key, sign_count = await asyncio.to_thread(check_made, site, challenge, answer)

        async def unit(tx: Tx) -> queries.StoredPasskey:
            session = await self._check_adding(tx, account, by, now)
            made = queries.StoredPasskey(
                id=f"p_{secrets.token_hex(12)}",
                rp_id=site.rp_id,
                name=name or session.label or "Passkey",
                created_at=now,
                used_at=None,
                account_id=account.id,
                credential_id=key,
                public_key=public_key,
                sign_count=sign_count,
            )
            fresh = await queries.spend(tx, hash_secret(ticket), until, now)
            if not fresh or not await queries.insert(tx, made):
                raise e.PasskeyInvalid
            return made

        made = await self.store.write(unit)
        audit_credential("passkey.added", account, made.id, account.handle)
        return made

    async def _check_adding(self, tx: Tx, account: Account, by: str, now: int) -> Credential:
        """The browser session that a passkey is added in.

        A passkey opens everything and never ends: what it is made with must be as good.
        """
        came_from = await credentials.lineage(tx, by)
        if not came_from or came_from[0].account_id != account.id:
            raise e.TokenInvalid
        if came_from[0].kind != "browser" or account.account_type != "person":
            raise e.AccessDenied(ONLY_PEOPLE)
        if not scope_of(came_from[0].scope).covers(WHOLE) or any(
            each.expires_at is not None for each in came_from if each.kind != "browser"
        ):
            raise e.AccessDenied(ENDS)
        began = min(each.created_at for each in came_from if each.kind == "browser")
        if began + PASSKEY_SIGN_IN_SECONDS <= now:
            raise e.ConfirmationInvalid(SIGN_IN_AGAIN)
        there = len(await queries.of_account(tx, account.id))
        if there >= MAX_PASSKEYS:
            sentence = f"You have {there} passkeys. Remove one that you do not use first."
            raise e.QuotaExceeded(sentence, quota="passkeys", limit=MAX_PASSKEYS, used=there)
        return came_from[0]

    async def rename(self, account: Account, passkey_id: str, name: str) -> Passkey:
        """Give a passkey another name."""
        name = check_name(name)
        found = await self.store.write(lambda tx: queries.rename(tx, account.id, passkey_id, name))
        if found is None:
            raise e.PasskeyNotFound
        return found

    async def remove(self, account: Account, passkey_id: str, other_way: str = "") -> None:
        """Remove a passkey; for the last one a token or the recovery code is the `other_way` in."""
        now = int(self.clock.now())

        async def unit(tx: Tx) -> None:
            there = await queries.of_account(tx, account.id)
            if all(each.id != passkey_id for each in there):
                raise e.PasskeyNotFound
            if len(there) == 1 and not await opens(tx, account.id, other_way.strip(), now):
                raise e.ConfirmationInvalid(LAST)
            await queries.remove(tx, account.id, passkey_id)

        await self.store.write(unit)
        audit_credential("passkey.removed", account, passkey_id, account.handle)

    def begin_sign_in(self, base_url: str) -> Challenge:
        """What a browser signs in with. It names nobody, so it tells nobody who is here."""
        return self._asked("sign_in", Site.at(base_url), [])

    async def sign_in(self, base_url: str, ticket: str, answer: str) -> Account:
        """The account whose passkey answers; whatever is wrong with it is told alike."""
        return await self._use("sign_in", base_url, ticket, answer)

    async def begin_presence(
        self, account: Account, base_url: str, decision: Decision
    ) -> Challenge:
        """What a person's passkey signs for one decision of theirs, and for nothing else."""
        site = Site.at(base_url)
        known = await self.store.read(lambda tx: queries.credential_ids(tx, account.id, site.rp_id))
        if not known:
            raise e.PasskeyNotFound(NONE_HERE)
        return self._asked("presence", site, known, account.id, decision)

    async def check_presence(
        self, account: Account, base_url: str, decision: Decision, ticket: str, answer: str
    ) -> None:
        """Refuse a decision that the person's passkey did not sign just now."""
        await self._use("presence", base_url, ticket, answer, account.id, decision)

    def _asked(
        self, purpose: Purpose, site: Site, known: Iterable[str], of: str = "", about: object = None
    ) -> Challenge:
        """What a browser is asked to have signed, by one of the known passkeys or by any."""
        ticket, challenge = self._challenge(purpose, site, of, about)
        options = {
            "challenge": challenge,
            "timeout": PASSKEY_SECONDS * 1000,
            "rpId": site.rp_id,
            "allowCredentials": descriptors(known),
            "userVerification": REQUIRED,
        }
        return Challenge(ticket, options)

    async def _use(
        self,
        purpose: Purpose,
        base_url: str,
        ticket: str,
        answer: str,
        of: str = "",
        about: object = None,
    ) -> Account:
        """The account, or that `of` somebody, whose passkey signed what it was asked to."""
        site = Site.at(base_url)
        until, challenge = self._expected(purpose, site, of, ticket, about)
        read = answered(answer)
        known = await self.store.read(lambda tx: queries.by_credential(tx, read.id))
        # One that nobody has is checked as well: how long it takes tells nothing.
        key = "" if known is None else known.public_key
        sign_count = await asyncio.to_thread(check_used, site, challenge, key, answer)
        if known is None or known.rp_id != site.rp_id or of not in ("", known.account_id):
            raise e.PasskeyInvalid
        if read.response.user_handle not in (None, encoded(known.account_id.encode())):
            raise e.PasskeyInvalid
        now = int(self.clock.now())

        async def unit(tx: Tx) -> Account:
            account = await account_by_id(tx, known.account_id)
            fresh = await queries.spend(tx, hash_secret(ticket), until, now)
            used = fresh and await queries.use(tx, known.id, sign_count, now)
            if account is None or not used:
                raise e.PasskeyInvalid
            if account.suspended_at is not None:
                raise e.AccountSuspended
            return account

        return await self.store.write(unit)

    def _challenge(
        self, purpose: Purpose, site: Site, account_id: str = "", about: object = None
    ) -> tuple[str, str]:
        """A new ticket, and its challenge."""
        until = int(self.clock.now()) + PASSKEY_SECONDS
        ticket = self._tickets.make(purpose, Ticket(secrets.token_bytes(16), until))
        return ticket, digest(purpose, site, account_id, ticket, about)

    def _expected(
        self, purpose: Purpose, site: Site, account_id: str, ticket: str, about: object = None
    ) -> tuple[int, str]:
        """Until when a ticket is good, and its challenge."""
        found = self._tickets.open(purpose, ticket)
        if found is None or found.until <= self.clock.now():
            raise e.PasskeyInvalid
        return found.until, digest(purpose, site, account_id, ticket, about)


def digest(purpose: Purpose, site: Site, account_id: str, ticket: str, about: object) -> str:
    """The challenge over everything that an answer is about."""
    whole = [f"folkmoot {purpose}", site.origin, account_id, ticket, about]
    return encoded(sha256(msgspec.json.encode(whole, order="deterministic")).digest())


def encoded(value: bytes) -> str:
    """Bytes as WebAuthn writes them in JSON."""
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def descriptors(credential_ids: Iterable[str]) -> list[dict[str, str]]:
    return [{"type": "public-key", "id": each} for each in credential_ids]


def check_name(name: str) -> str:
    """A name for a passkey, such as the device it is on."""
    name = name.strip()
    if not 1 <= len(name) <= MAX_LABEL or not name.isprintable():
        raise e.ArgumentInvalid(
            f"name must be 1 to {MAX_LABEL} characters on one line.", field="name"
        )
    return name


async def opens(tx: Tx, account_id: str, secret: str, now: int) -> bool:
    """Whether a text is a token of an account, or its recovery code."""
    hashed = hash_of(TOKEN, secret)
    if hashed is not None:
        row = await tx.fetch_one(credentials.BY_HASH, (hashed,))
        found = credentials.identity_of(row, hashed)
        if found is None or found.credential.account_id != account_id:
            return False
        return found.credential.kind == "token" and (found.credential.expires_at or now + 1) > now
    stored, given = await secrets_of(tx, account_id), hash_recovery_code(secret)
    return stored is not None and given is not None and compare_digest(stored.recovery_hash, given)


def answered(answer: str) -> Answered:
    """What a browser answers; it is read no further than to find the passkey."""
    if len(answer) > MAX_PASSKEY_ANSWER:
        raise e.PasskeyInvalid
    try:
        read = msgspec.json.decode(answer, type=Answered)
    except (msgspec.MsgspecError, UnicodeError):
        raise e.PasskeyInvalid from None
    if len(read.id) > MAX_PASSKEY_ID:
        raise e.PasskeyInvalid
    return read


def check_made(site: Site, challenge: str, answer: str) -> tuple[str, str, int]:
    """The id, key and count of a new passkey, in a thread: the library takes its time to load."""
    read = answered(answer)
    try:
        server, data = loaded(site), msgspec.json.decode(answer)
        check_frame(data)
        made = server.register_complete(state_of(challenge), data)
        key = made.credential_data
        if key.public_key.ALGORITHM not in ALGORITHMS or encoded(key.credential_id) != read.id:
            raise ValueError  # noqa: TRY301 - refused like everything else
    # Whatever is wrong with bytes of a stranger, they are told nothing of it.
    except Exception:  # noqa: BLE001
        raise e.PasskeyInvalid from None
    return read.id, b64encode(bytes(key)).decode(), made.counter


def check_used(site: Site, challenge: str, public_key: str, answer: str) -> int:
    """The count of a passkey that signed, in a thread as well; without a key it fails, as late."""
    try:
        from fido2.webauthn import AttestedCredentialData, AuthenticationResponse

        server, data = loaded(site), msgspec.json.decode(answer)
        check_frame(data)
        read = AuthenticationResponse.from_dict(data)
        stored = b64decode(public_key) if public_key else nobodys(read.raw_id)
        server.authenticate_complete(state_of(challenge), [AttestedCredentialData(stored)], data)
    except Exception:  # noqa: BLE001
        raise e.PasskeyInvalid from None
    return int(read.response.authenticator_data.counter)


def nobodys(credential_id: bytes) -> bytes:
    """A passkey that nobody has, under any id."""
    from fido2.webauthn import AttestedCredentialData

    return bytes(AttestedCredentialData.create(bytes(16), credential_id, nobodys_key()))


@cache
def nobodys_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec
    from fido2.cose import ES256

    made: Any = ES256
    return made.from_cryptography_key(ec.generate_private_key(ec.SECP256R1()).public_key())


def loaded(site: Site) -> Any:
    """The library's checks, for exactly one origin; it logs nothing of anyone's passkeys."""
    from fido2.server import Fido2Server
    from fido2.webauthn import PublicKeyCredentialRpEntity

    logging.getLogger("fido2").setLevel(logging.ERROR)
    rp = PublicKeyCredentialRpEntity(id=site.rp_id, name="Folkmoot")
    return Fido2Server(rp, verify_origin=lambda origin: origin == site.origin)


def state_of(challenge: str) -> dict[str, str]:
    return {"challenge": challenge, "user_verification": REQUIRED}


def check_frame(data: Mapping[str, Any]) -> None:
    """Refuse an answer from a frame that another site shows."""
    from fido2.utils import websafe_decode
    from fido2.webauthn import CollectedClientData

    if CollectedClientData(websafe_decode(data["response"]["clientDataJSON"])).cross_origin:
        raise ValueError
