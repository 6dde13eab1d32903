"""How an account begins, is recovered and ends, and the handles that nobody can simply take."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from hmac import compare_digest
from typing import NamedTuple

from folkmoot.accounts import queries
from folkmoot.accounts import queries_credentials as credentials
from folkmoot.accounts.credentials import (
    check_public_key,
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
    Registered,
    Secret,
)
from folkmoot.core import errors as e
from folkmoot.core.ports import Sealer, Store, Tx
from folkmoot.names.grammar import RESERVED_NAMES, parse_handle
from folkmoot.rows import one


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

        async def unit(tx: Tx) -> None:
            taken = {}
            for name in sorted(wanted):
                if not await queries.reserve(tx, name, now):
                    taken[name] = await standing(tx, name, now) or Standing("reserved", now, None)
            if taken:
                raise NamesTaken(taken)

        try:
            await store.write(unit)
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
    return await one(
        tx,
        Standing,
        "SELECT h.kind, h.until, u.handle FROM handles h LEFT JOIN users u ON u.id = h.user_id "
        "WHERE h.handle = ? AND (h.kind = 'live' OR h.until > ?)",
        (name, now),
    )


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


FIRST = "first token"

PRIVATE_KEY = "private_key"
"""What a private key is sealed for; its row is the account's id."""

NOBODY = ""
"""No account has this id, or this handle."""

NO_HASH = "0" * 64


class Application(Secret, frozen=True, gc=False):
    """An account that is ready to be stored, and what its owner is told."""

    registered: Registered
    stored: queries.Secrets
    credential: Credential


def check_application(
    sealer: Sealer,
    now: int,
    handle: str,
    account_type: AccountType,
    client_public_key: str | None = None,
) -> Application:
    """Check the fields of a registration, and create its token and keys."""
    name = parse_handle(handle)
    if name is None:
        raise e.HandleInvalid
    if client_public_key is not None:
        check_public_key("client_public_key", client_public_key)
    if account_type not in ACCOUNT_TYPES:
        raise e.ArgumentInvalid(
            f"account_type must be {' or '.join(ACCOUNT_TYPES)}.", field="account_type"
        )
    user_id, keys = str(uuid.uuid4()), new_key_pair()
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
    stored = queries.Secrets(
        recovery_hash=hash_secret(recovery_code),
        private_key=sealer.seal(PRIVATE_KEY, user_id, keys.private),
    )
    first = Credential(credentials.new_id(), "token", user_id, now, label=FIRST)
    return Application(Registered(account, token, recovery_code, first.id), stored, first)


async def insert_account(tx: Tx, application: Application) -> None:
    """Store an account and its first token, unless its handle is taken."""
    account, token = application.registered.account, application.registered.token
    if not await queries.claim_handle(tx, account.handle, account.id, account.created_at):
        raise e.HandleTaken
    await queries.insert_user(tx, account, application.stored)
    await credentials.insert(tx, application.credential, hash_secret(token))


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
