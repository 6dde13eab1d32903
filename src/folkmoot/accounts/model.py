"""The nouns: what an account is, what its actions answer, and the event about its changes.

None of them holds a stored secret.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from folkmoot.core.events import ACCOUNTS, subject
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.core.scopes import ALL

if TYPE_CHECKING:
    from folkmoot.core.ports import Event, Tx


Policy: TypeAlias = Literal["open", "invite", "closed"]
Privacy: TypeAlias = Literal["public", "contacts_only", "private"]
CredentialKind: TypeAlias = Literal["token", "browser", "app", "device", "guest", "session"]
AccountType: TypeAlias = Literal["person", "agent"]
InviteState: TypeAlias = Literal["unknown", "claimed", "expired", "valid"]


PRIVACY_LEVELS: tuple[str, ...] = get_args(Privacy)
ACCOUNT_TYPES: tuple[str, ...] = get_args(AccountType)


class Secret(Struct, frozen=True, gc=False):
    """Holds what nobody else is told: its `repr` shows no field."""

    __repr__ = object.__repr__


class Account(Struct, frozen=True, gc=False):
    """A user as stored; privacy is applied by the code that shows it to others."""

    id: str
    handle: str
    display_name: str
    bio: str
    privacy: Privacy
    status: str
    account_type: AccountType
    public_key: str
    client_public_key: str | None
    created_at: int
    updated_at: int
    payload_formats: str = ""
    """What the owner of `client_public_key` reads in a box beside plain text, by spaces."""
    suspended_at: int | None = None
    """Since when the operator lets nobody use it; None for an account that is in use."""
    operator_since: int | None = None
    """Since when its browser sessions can run the hub; None where they cannot."""


class Credential(Struct, frozen=True, gc=False):
    """What opens an account, or a guest's room, without its secret."""

    id: str
    """May be shown and logged."""
    kind: CredentialKind
    account_id: str | None
    created_at: int
    guest_id: str | None = None
    parent_id: str | None = None
    """The credential that it ends with: the token of a session that was signed in by it."""
    label: str = ""
    used_at: int | None = None
    """When it was used last, as it was stored a few minutes later."""
    expires_at: int | None = None
    scope: str = ALL
    """The part of the account's rights that it has."""

    @property
    def is_access(self) -> bool:
        """Whether it is an access token of an app, one of many that a grant has in turn."""
        return self.kind == "app" and self.parent_id is not None

    @property
    def lasting_id(self) -> str:
        """What outlasts it: the grant of an access token, else itself.

        Whatever is open with an access token belongs to the grant, and ends with that.
        """
        return (self.parent_id or self.id) if self.kind == "app" else self.id


class Identity(Struct, frozen=True, gc=False):
    """Who is behind a secret: a credential, and the account it opens; a guest has none."""

    credential: Credential
    account: Account | None
    principal: Principal
    """Who that is as policy knows them, with the scope of the credential."""


def usable(identity: Identity | None) -> Account | None:
    """The account of whoever was identified, unless it is suspended."""
    account = None if identity is None else identity.account
    return None if account is None or account.suspended_at is not None else account


def principal_of(account: Account, scope: str = ALL) -> Principal:
    """An account as a principal of the policy, with the scope of its credential."""
    return Principal(account.id, account.handle, PrincipalType(account.account_type), scope)


class NewToken(Secret, frozen=True, gc=False):
    """A token that was just made, and its secret, which nobody can be told again."""

    credential: Credential
    token: str


class OneTimeCode(Secret, frozen=True, gc=False):
    """A code that opens one browser session, and until when."""

    code: str
    expires_at: int


class AppClient(Struct, frozen=True, gc=False):
    """Who an app is, as its person has seen it when they consented."""

    client_id: str
    client_name: str
    redirect_host: str
    resource: str
    """The address that its tokens are for."""


class ConnectedApp(AppClient, frozen=True, gc=False):
    """An app that an account is connected to."""

    id: str
    """Of the grant: what it is revoked by."""
    kind: CredentialKind
    scope: str
    created_at: int
    used_at: int | None


class Pair(Secret, frozen=True, gc=False):
    """The tokens that an app is given, which nobody can be told again."""

    access_token: str
    refresh_token: str
    scope: str
    expires_in: int
    """Seconds until the access token expires."""


class SessionTimes(Struct, frozen=True, gc=False):
    """How long browser sessions last, in seconds."""

    idle: int = 7 * 86_400
    """After so long without use."""
    longest: int = 30 * 86_400
    """In any case."""

    def until(self, created_at: int, now: int, parent_until: int | None) -> int:
        """When a session ends that is used now, and not later than what it was opened with."""
        ends = min(created_at + self.longest, now + self.idle)
        return ends if parent_until is None else min(ends, parent_until)


class PersonRow(Struct, frozen=True, gc=False):
    """An account as the operator sees it in a list."""

    handle: str
    display_name: str
    account_type: AccountType
    created_at: int
    suspended_at: int | None
    operator_since: int | None
    mail_bytes: int
    room_bytes: int
    rooms: int
    seen_at: int | None
    """When it was last used; null if with nothing that still opens it."""


class Registered(Secret, frozen=True, gc=False):
    """A new account with its credentials, which nobody can be told again."""

    account: Account
    token: str
    recovery_code: str
    credential_id: str


class Recovered(Secret, frozen=True, gc=False):
    """An account with its new token."""

    account: Account
    token: str
    credential_id: str


class HandleChange(Struct, frozen=True, gc=False):
    """The account under its new handle, and how long the old one leads to it."""

    account: Account
    old_handle: str
    new_handle: str
    redirects_until: int


class FoundAccount(Struct, frozen=True, gc=False):
    """A user whom a search found; of one who is `contacts_only` the rest is not told."""

    handle: str
    display_name: str
    bio: str | None
    account_type: AccountType | None


class Contact(Struct, frozen=True, gc=False):
    """Someone in a list of contacts."""

    handle: str
    display_name: str
    nickname: str
    added_at: int


class ContactPage(Struct, frozen=True, gc=False):
    """Some contacts by handle, and the cursor of the next ones if there are more."""

    contacts: list[Contact]
    next_cursor: str | None


class BlockedPage(Struct, frozen=True, gc=False):
    """Some handles of people who are blocked, and the cursor of the next ones if there are more."""

    blocked: list[str]
    next_cursor: str | None


class HandleInvite(Secret, frozen=True, gc=False):
    """An invite that the operator made for one handle; its code is told this once."""

    code: str
    handle: str
    until: int


class HubInvitation(Secret, frozen=True, gc=False):
    """What the link of an invite shows; of an expired or claimed invite, only that it is over."""

    state: InviteState
    handle: str | None = None
    """The handle it was made for, if it was made for one."""
    inviter: str | None = None
    inviter_name: str | None = None
    message: str | None = None
    """The inviter's words."""
    opens: bool = False
    """Whether an account can be made with it."""


class InviteRecord(Struct, frozen=True, gc=False):
    """An invite, without its code."""

    created_at: int
    claimed_at: int | None


class OpenInvite(Struct, frozen=True, gc=False):
    """An invite that nobody has used yet, without its code."""

    id: str
    """May be shown and logged: nobody finds the code by it."""
    created_at: int
    until: int | None
    """When it stops working; null if never."""
    handle: str | None
    """The handle that it is for alone."""
    invited_by: str | None
    """The handle of whoever made it; null for an operator."""
    has_message: bool
    """Whether a message waits for whoever uses it."""


class Consent(Struct, frozen=True):
    """What a person lets the hub do for them at a server behind it, without the tokens."""

    namespace: str
    issuer: str
    scope: str
    """What was asked for."""
    created_at: int
    expires_at: int | None
    """When its present token ends, where that is known."""
    state: Literal["live", "lapsed"]


class Passkey(Struct, frozen=True, gc=False):
    """A passkey as its owner sees it."""

    id: str
    rp_id: str
    """The name of the hub that it was made at; it works there alone."""
    name: str
    created_at: int
    used_at: int | None


class Decision(Struct, frozen=True, array_like=True):
    """What someone decides: which operation or ask it is about, on which arguments, and how."""

    about: str
    arguments: Any
    verdict: str = ""


class CompanyAccount(Struct, frozen=True):
    """Who somebody is at the provider of their company."""

    issuer: str
    subject: str
    groups: list[str]
    """As of the last sign-in."""
    created_at: int
    used_at: int


class AccountExport(Struct, frozen=True, gc=False):
    """Everything the hub keeps of an account, but its mail and its secrets."""

    account: Account
    redirects: dict[str, int]
    """Old handles, and until when each leads here."""
    contacts: list[Contact]
    blocked: list[str]
    invites: list[InviteRecord]
    apps: list[ConnectedApp]
    servers: list[Consent]
    passkeys: list[Passkey]
    company_accounts: list[CompanyAccount]


Welcome: TypeAlias = "Callable[[Tx, Account, str | None, str | None], Awaitable[None]]"
"""Joins a registration's transaction: the new account, its inviter's id, the pending message."""

OnDelete: TypeAlias = "Callable[[Tx, Account], Awaitable[None]]"
"""Joins a deletion's transaction, before the account itself is gone."""


Change: TypeAlias = Literal[
    "profile", "handle", "operator", "restored", "suspended", "recovered", "deleted"
]

ENDING: Final = frozenset({"suspended", "recovered", "deleted"})
"""Changes after which no token that was valid before is."""
CLOSING: Final = frozenset({"suspended", "deleted"})
"""Changes after which nobody can use the account."""


class AccountChange(Struct, frozen=True):
    """A change of an account, and who it is since."""

    id: str
    change: Change
    handle: str
    type: str
    redirects: dict[str, int] = {}
    """After a change of the handle: those before it that still lead here, and until when."""

    @property
    def ends_tokens(self) -> bool:
        """Whether no token that was valid before is valid now."""
        return self.change in ENDING

    @property
    def closes(self) -> bool:
        """Whether nobody can use the account now."""
        return self.change in CLOSING

    @property
    def principal(self) -> Principal:
        """The changed account, as a principal of the policy."""
        return Principal(self.id, self.handle, PrincipalType(self.type))


def publish_change(
    tx: Tx, account: Account, change: Change, redirects: dict[str, int] | None = None
) -> None:
    """Within a unit: have everyone told of a change once it is committed."""
    changed = AccountChange(
        account.id, change, account.handle, account.account_type, redirects or {}
    )
    tx.publish(subject(ACCOUNTS, account.id), changed)


def read_change(event: Event) -> AccountChange:
    """The change that an event tells of."""
    return msgspec.convert(event.data, AccountChange)
