"""How an account begins, is recovered and ends, and the handles that nobody can simply take."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from hmac import compare_digest
from typing import NamedTuple

from msgspec import Struct

from folkmoot.accounts import queries
from folkmoot.accounts import queries_credentials as credentials
from folkmoot.accounts.authentication import FIRST, token_of
from folkmoot.accounts.credentials import (
    INVITE,
    check_public_key,
    hash_of,
    hash_recovery_code,
    hash_secret,
    new_key_pair,
    new_recovery_code,
    new_secret,
)
from folkmoot.accounts.handles import is_official
from folkmoot.accounts.model import (
    ACCOUNT_TYPES,
    Account,
    AccountType,
    Credential,
    Policy,
    Registered,
)
from folkmoot.accounts.queries_invites import handle_of_invite
from folkmoot.core import errors as e
from folkmoot.core.ports import Sealer, Store, Tx
from folkmoot.names.grammar import RESERVED_NAMES, parse_handle


class ReservedNames:
    """The names reserved on this hub, beside those reserved on every hub.

    A backend's *namespace* is no one's handle. An *awaited* handle is an official one such as
    `support`, or one that the operator gave rights to: whoever has it keeps it, and otherwise it
    needs an invite made for it. Units read both, perhaps in another thread, so a set is replaced,
    never changed.
    """

    def __init__(self, namespaces: Iterable[str] = (), awaited: Iterable[str] = ()) -> None:
        self.namespaces = frozenset(namespaces)
        self.awaited = frozenset(awaited)

    def belongs_elsewhere(self, name: str) -> bool:
        """Whether a name can be no handle at all."""
        return name in RESERVED_NAMES or name in self.namespaces

    def awaits(self, handle: str) -> bool:
        """Whether a handle is kept for someone with an invite that was made for it."""
        return handle in self.awaited or is_official(handle)

    async def reserve(self, store: Store, names: Iterable[str], now: int) -> dict[str, Standing]:
        """Let these be namespaces from now on, unless one of them is taken already.

        Answers how it is with those that are. A namespace has a row among the handles, so whoever
        registers at the same moment, at any hub, either has the name or finds it taken.
        """
        wanted = frozenset(names)
        fresh = wanted - self.namespaces
        self.namespaces |= fresh
        try:
            await store.write(lambda tx: do_reserve(tx, sorted(wanted), now))
        except NamesTaken as error:
            self.namespaces -= fresh
            return error.taken
        return {}

    async def keep_only(self, store: Store, names: Iterable[str]) -> None:
        """Let these be all namespaces there are; others are free from now on."""
        kept = frozenset(names)
        if await store.read(queries.namespaces) - kept:
            await store.write(lambda tx: queries.release_others(tx, kept))
        self.namespaces = kept


class Standing(NamedTuple):
    """Why a name is not free: `live`, `redirect` or `reserved`, until when."""

    kind: str
    until: int | None
    handle: str | None
    """The present handle of whoever has it."""


async def standing(tx: Tx, name: str, now: int) -> Standing | None:
    """Why a name is not free; nothing where it is free."""
    row = await tx.fetch_one(
        "SELECT h.kind, h.until, u.handle FROM handles h LEFT JOIN users u ON u.id = h.user_id "
        "WHERE h.handle = ? AND (h.kind = 'live' OR h.until > ?)",
        (name, now),
    )
    return None if row is None else Standing(*row)


def why_taken(kept: Standing) -> str:
    """Why a name is not free, as half a sentence for the operator."""
    if kept.kind == "live":
        return "an account has this handle"
    day = datetime.fromtimestamp(kept.until or 0, UTC).date()
    if kept.kind == "redirect":
        return f"it leads to @{kept.handle}, who had it before, until {day}"
    return f"an account that had it was deleted, and it stays reserved until {day}"


class NamesTaken(Exception):
    """Some of the names are someone's, lead to someone, or were someone's until lately."""

    def __init__(self, taken: dict[str, Standing]) -> None:
        super().__init__()
        self.taken = taken


async def do_reserve(tx: Tx, names: Iterable[str], now: int) -> None:
    """Make all of the names namespaces, or none of them."""
    taken = {}
    for name in names:
        if not await queries.reserve(tx, name, now):
            taken[name] = await standing(tx, name, now) or Standing("reserved", now, None)
    if taken:
        raise NamesTaken(taken)


PRIVATE_KEY = "private_key"
"""What a private key is sealed for; its row is the account's id."""

NOBODY = ""
"""No account has this id, or this handle."""

NO_HASH = "0" * 64


class Application(Struct, frozen=True, gc=False):
    """An account that is ready to be stored, with its credentials."""

    account: Account
    secrets: queries.Secrets
    credential: Credential
    token: str
    recovery_code: str
    invite_hash: str | None
    """Nothing where no code was given; empty where what was given cannot be one."""

    def registered(self) -> Registered:
        """What the applicant is told."""
        return Registered(self.account, self.token, self.recovery_code, self.credential.id)

    def __repr__(self) -> str:
        return f"<Application {self.account.handle}>"


async def check_invited(tx: Tx, invite_code: str | None) -> None:
    """Refuse everyone but those whom the operator invited under a handle of theirs."""
    code_hash = hash_of(INVITE, invite_code.strip()) if invite_code else None
    if code_hash is None or await handle_of_invite(tx, code_hash) is None:
        raise e.RegistrationClosed


def check_application(
    policy: Policy,
    sealer: Sealer,
    now: int,
    *,
    handle: str,
    account_type: AccountType,
    client_public_key: str | None = None,
    invite_code: str | None = None,
) -> Application:
    """Check the fields of a registration, and create its token and keys."""
    if policy == "invite" and not invite_code:
        raise e.InviteRequired
    name = parse_handle(handle)
    if name is None:
        raise e.HandleInvalid
    if client_public_key is not None:
        check_public_key("client_public_key", client_public_key)
    if account_type not in ACCOUNT_TYPES:
        raise e.ArgumentInvalid(
            f"account_type must be {' or '.join(ACCOUNT_TYPES)}.", field="account_type"
        )
    user_id = str(uuid.uuid4())
    keys = new_key_pair()
    token, recovery_code = new_secret("sk"), new_recovery_code()
    account = Account(
        id=user_id,
        handle=name,
        display_name=name,
        bio="",
        privacy="public",
        status="",
        account_type=account_type,
        public_key=keys.public,
        client_public_key=client_public_key,
        created_at=now,
        updated_at=now,
    )
    secrets = queries.Secrets(
        recovery_hash=hash_secret(recovery_code),
        private_key=sealer.seal(PRIVATE_KEY, user_id, keys.private),
    )
    invite_hash = (hash_of(INVITE, invite_code.strip()) or "") if invite_code else None
    credential = token_of(user_id, FIRST, now)
    return Application(account, secrets, credential, token, recovery_code, invite_hash)


async def insert_account(tx: Tx, application: Application) -> None:
    """Store an account and its first token, unless its handle is taken."""
    account = application.account
    if not await queries.claim_handle(tx, account.handle, account.id, account.created_at):
        raise e.HandleTaken
    await queries.insert_user(tx, account, application.secrets)
    await credentials.insert(tx, application.credential, hash_secret(application.token))


async def check_recovery(tx: Tx, handle: str, code: str, now: int) -> Account:
    """The account with this handle, if the recovery code is its own."""
    account = await queries.by_handle(tx, parse_handle(handle) or NOBODY, now)
    await check_code(tx, account.id if account is not None else NOBODY, code)
    if account is None:
        raise e.HandleNotFound
    if account.suspended_at is not None:
        raise e.AccountSuspended
    return account


async def check_code(tx: Tx, user_id: str, code: str) -> None:
    """Raise unless the recovery code is the account's.

    Comparing takes the same time for any, and is done for nobody's account too, so that time does
    not tell which handles there are.
    """
    stored = await queries.secrets_of(tx, user_id)
    known = stored.recovery_hash if stored is not None else NO_HASH
    is_right = compare_digest(known, hash_recovery_code(code) or NO_HASH)
    if stored is None:
        raise e.HandleNotFound
    if not is_right:
        raise e.RecoveryCodeInvalid


async def access_own(tx: Tx, user_id: str) -> Account:
    """The caller's account as it is now: it may be gone since the request was let in."""
    account = await queries.by_id(tx, user_id)
    if account is None:
        raise e.TokenInvalid
    return account
