"""How an account begins, is recovered and ends."""

from __future__ import annotations

import uuid
from hmac import compare_digest

from msgspec import Struct

from folkmoot import audit
from folkmoot.accounts import queries
from folkmoot.accounts import queries_credentials as credentials
from folkmoot.accounts.authentication import FIRST, token_of
from folkmoot.accounts.credentials import (
    hash_invite_code,
    hash_recovery_code,
    hash_secret,
    new_recovery_code,
    new_token,
)
from folkmoot.accounts.events import publish_change
from folkmoot.accounts.handles import REDIRECT_SECONDS, parse_handle
from folkmoot.accounts.keypairs import check_public_key, new_key_pair
from folkmoot.accounts.model import (
    ACCOUNT_TYPES,
    Account,
    AccountType,
    Credential,
    Policy,
    Registered,
)
from folkmoot.accounts.ports import Farewell, Sealer, Welcome
from folkmoot.accounts.queries_invites import PURPOSE as PENDING
from folkmoot.accounts.queries_invites import Claim, claim_invite, handle_of_invite
from folkmoot.accounts.queries_people import put_contact
from folkmoot.accounts.reserved import ReservedNames
from folkmoot.core.errors import (
    AccountSuspended,
    ArgumentInvalid,
    HandleInvalid,
    HandleNotFound,
    HandleTaken,
    InviteRequired,
    RecoveryCodeInvalid,
    RegistrationClosed,
    TokenInvalid,
    UserNotFound,
)
from folkmoot.core.ports import Tx

PRIVATE_KEY = "private_key"
"""What a private key is sealed for; its row is the account's id."""

NOBODY = ""
"""No account has this id, or this handle."""

NO_NICKNAME = ""

NO_HASH = "0" * 64
"""No secret has this hash."""


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
    code_hash = hash_invite_code(invite_code.strip()) if invite_code else None
    if code_hash is None or await handle_of_invite(tx, code_hash) is None:
        raise RegistrationClosed


def check_application(
    policy: Policy,
    sealer: Sealer,
    now: int,
    *,
    handle: str,
    client_public_key: str | None,
    invite_code: str | None,
    account_type: AccountType,
) -> Application:
    """Check what an applicant gave, and make what they get."""
    if policy == "invite" and not invite_code:
        raise InviteRequired
    name = parse_handle(handle)
    if name is None:
        raise HandleInvalid
    if client_public_key is not None:
        check_public_key("client_public_key", client_public_key)
    if account_type not in ACCOUNT_TYPES:
        raise ArgumentInvalid(
            f"account_type must be {' or '.join(ACCOUNT_TYPES)}.", field="account_type"
        )
    user_id = str(uuid.uuid4())
    keys = new_key_pair()
    token, recovery_code = new_token(), new_recovery_code()
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
    invite_hash = (hash_invite_code(invite_code.strip()) or "") if invite_code else None
    credential = token_of(user_id, FIRST, now)
    return Application(account, secrets, credential, token, recovery_code, invite_hash)


async def do_register(
    tx: Tx,
    application: Application,
    *,
    reserved: ReservedNames,
    sealer: Sealer,
    also: Welcome | None,
) -> None:
    """Store a new account and claim its invite, which a name that is kept for someone needs."""
    account = application.account
    now = account.created_at
    claim = Claim(None, None)
    # The invite comes first, so that without one nobody learns which names are taken.
    if application.invite_hash is not None:
        claim = await claim_invite(tx, application.invite_hash, account.id, account.handle, now)
    if reserved.belongs_elsewhere(account.handle):
        raise HandleTaken
    if reserved.awaits(account.handle) and claim.handle is None:
        raise InviteRequired("This handle needs an invite that was made for it.")
    if not await queries.take_handle(tx, account.handle, account.id, now):
        raise HandleTaken
    await insert_account(tx, application)
    if claim.inviter_id is not None:
        # So that whoever is invited may answer, though the inviter hears contacts alone.
        await put_contact(tx, claim.inviter_id, account.id, NO_NICKNAME, now)
    if also is not None:
        message = None
        if claim.pending is not None:
            row = application.invite_hash or ""
            message = sealer.open(PENDING, row, claim.pending).decode()
        await also(tx, account, claim.inviter_id, message)


async def do_add(tx: Tx, application: Application, reserved: ReservedNames) -> None:
    """Store an account that the operator makes, under a name that may await someone."""
    account = application.account
    if reserved.belongs_elsewhere(account.handle):
        raise HandleTaken
    if not await queries.take_handle(tx, account.handle, account.id, account.created_at):
        raise HandleTaken
    await insert_account(tx, application)


async def insert_account(tx: Tx, application: Application) -> None:
    """Store an account and its first token."""
    await queries.insert_user(tx, application.account, application.secrets)
    await credentials.insert(tx, application.credential, hash_secret(application.token))


async def do_suspend(tx: Tx, user_id: str, since: int | None, now: int) -> Account:
    """Set since when an account is suspended; one that is already stays as it is."""
    account = await queries.by_id(tx, user_id)
    if account is None:
        raise UserNotFound
    if (account.suspended_at is None) == (since is None):
        return account
    changed = await queries.update_user(tx, user_id, {"suspended_at": since}, now)
    publish_change(tx, changed, "restored" if since is None else "suspended")
    return changed


async def check_recovery(tx: Tx, handle: str, code: str, now: int) -> Account:
    """The account with this handle, if the recovery code is its own."""
    account = await queries.by_handle(tx, parse_handle(handle) or NOBODY, now)
    await check_code(tx, account.id if account is not None else NOBODY, code)
    if account is None:
        raise HandleNotFound
    if account.suspended_at is not None:
        raise AccountSuspended
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
        raise HandleNotFound
    if not is_right:
        raise RecoveryCodeInvalid


async def do_recover(
    tx: Tx, user_id: str, code: str, made: Credential, hashed: str, now: int
) -> Account:
    """Give an account another token; every credential it had is nobody's from then on."""
    await check_code(tx, user_id, code)
    account = await access_own(tx, user_id)
    if account.suspended_at is not None:
        raise AccountSuspended
    # Others who recover the account at the same moment wait here; the last one's token is left.
    account = await queries.update_user(tx, user_id, {}, now)
    await credentials.remove_all(tx, user_id)
    await credentials.insert(tx, made, hashed)
    publish_change(tx, account, "recovered")
    return account


async def do_delete(tx: Tx, user_id: str, now: int, also: Farewell | None) -> None:
    """Remove an account, and in the same transaction what others keep of it."""
    account = await access_own(tx, user_id)
    # Before an operator's own line about it, which stays.
    await audit.forget(tx, account.id, account.handle)
    if also is not None:
        await also(tx, account)
    await queries.delete_user(tx, user_id, now + REDIRECT_SECONDS)
    publish_change(tx, account, "deleted")


async def access_own(tx: Tx, user_id: str) -> Account:
    """The caller's account as it is now: it may be gone since the request was let in."""
    account = await queries.by_id(tx, user_id)
    if account is None:
        raise TokenInvalid
    return account
