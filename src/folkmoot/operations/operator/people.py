"""Accounts as the operator sees them: list, add, suspend, restore, remove.

Each change is stored with its line in the audit log. Where no hub runs, the next one logs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Struct
from msgspec.structs import asdict

from folkmoot.accounts.model import PersonRow
from folkmoot.core import errors as e
from folkmoot.operations.declare import OPERATED, Topic, delete, get, post, put
from folkmoot.operations.limits import MAX_OPERATOR_PAGE
from folkmoot.operations.operator.hub import Use
from folkmoot.operations.row import After, AuditSpec, Handle, Reason, describe
from folkmoot.operations.subjects import find, log, recording

if TYPE_CHECKING:
    from folkmoot.accounts import Account
    from folkmoot.audit import Line
    from folkmoot.core.ports import Tx
    from folkmoot.operations.call import Call

PATH: Final = "/v1/accounts/{handle}"
NOT_FOUND: Final = (e.CommandInvalid, e.UserNotFound)
operator = Topic(scope="operate", who="operator", tool=OPERATED, needs=("accounts",))


class PersonRows(Struct, frozen=True):
    """A page of accounts by handle."""

    people: list[PersonRow]
    next: str | None


@operator.reads(
    "folkmoot/people",
    get("/v1/accounts", "listAccounts", "List all accounts"),
    commands=("people list",),
)
async def people(
    call: Call,
    *,
    after: After = "",
    suspended: Annotated[bool, "Only suspended accounts."] = False,
    text: Annotated[str, describe("Only those whose handle or name has this text.", max_length=100)]
    | None = None,
) -> PersonRows:
    """List everyone who has an account, and what they store."""
    found = await call.services.accounts.list_people(
        after, MAX_OPERATOR_PAGE, suspended=suspended, text=text or ""
    )
    return PersonRows(found, found[-1].handle if len(found) == MAX_OPERATOR_PAGE else None)


class PersonDetails(PersonRow, frozen=True, kw_only=True):
    """One account as the operator sees it."""

    bio: str
    privacy: str
    quotas: dict[str, Use]
    """How much of each of its quotas is used: bytes of `mail` and `rooms`, and `tokens`."""


@operator.reads(
    "folkmoot/person",
    get(PATH, "getAccountOf", "Show an account"),
    errors=NOT_FOUND,
    commands=("people show",),
)
async def person(call: Call, handle: Handle) -> PersonDetails:
    """Show one account: its state, and how much of its quotas it uses."""
    accounts = call.services.accounts
    account = await find(call.services, handle)
    row = await accounts.person_row(account)
    quotas = await accounts.quotas_of(account.id, tokens=True)
    return PersonDetails(
        **asdict(row),
        bio=account.bio,
        privacy=account.privacy,
        quotas={name: Use(**use) for name, use in quotas.items()},
    )


class AddedPerson(Struct, frozen=True):
    """A new account, and what opens it; neither secret is shown again."""

    handle: str
    token: str
    recovery_code: str
    hub: str


@operator.adds(
    "folkmoot/add_person",
    put(PATH, "addAccount", "Create an account", status=201, example={"account_type": "agent"}),
    errors=(e.HandleInvalid, e.HandleTaken),
    audit=AuditSpec("account.added", "handle", by_service=True),
    commands=("people add",),
)
async def add_person(
    call: Call,
    handle: Handle,
    *,
    account_type: Annotated[
        Literal["person", "agent"], "Whether a person uses it, or a program."
    ] = "person",
) -> AddedPerson:
    """Create an account, without an invitation or limits. The token and the recovery code are not
    shown again.
    """
    services = call.services
    lines: list[Line] = []
    made = await services.accounts.add(
        handle, account_type=account_type, also=recording(call, "account.added", lines)
    )
    log(services, lines)
    hub = services.url.rstrip("/")
    return AddedPerson(made.account.handle, made.token, made.recovery_code, hub)


class SuspendedPerson(Struct, frozen=True):
    """Whether an account was changed, and since when it is suspended."""

    handle: str
    changed: bool
    suspended_at: int | None


@operator.changes(
    "folkmoot/suspend",
    post(PATH + "/suspend", "suspendAccount", "Suspend an account", example={"reason": "asked to"}),
    errors=NOT_FOUND,
    audit=AuditSpec("account.suspended", "handle", by_service=True),
    commands=("people suspend",),
)
async def suspend_person(call: Call, handle: Handle, *, reason: Reason = "") -> SuspendedPerson:
    """Lock an account until it is restored. Its tokens stop working and its connections are closed
    immediately; nothing is deleted, and mail to it still arrives.
    """
    return await set_suspended(call, handle, reason, suspended=True)


@operator.changes(
    "folkmoot/restore",
    post(
        PATH + "/restore",
        "restoreAccount",
        "Restore a suspended account",
        example={"reason": "asked to"},
    ),
    errors=NOT_FOUND,
    audit=AuditSpec("account.restored", "handle", by_service=True),
    commands=("people restore",),
)
async def restore_person(call: Call, handle: Handle, *, reason: Reason = "") -> SuspendedPerson:
    """Unlock a suspended account; its tokens work again."""
    return await set_suspended(call, handle, reason, suspended=False)


async def set_suspended(
    call: Call, handle: str, reason: str, *, suspended: bool
) -> SuspendedPerson:
    """Suspend or restore an account, unless it is already."""
    services = call.services
    lines: list[Line] = []
    account = await find(services, handle)
    if (account.suspended_at is not None) != suspended:
        action = "account.suspended" if suspended else "account.restored"
        account = await services.accounts.suspend(
            account, suspended=suspended, also=recording(call, action, lines, reason)
        )
    log(services, lines)
    return SuspendedPerson(account.handle, bool(lines), account.suspended_at)


class OperatorPerson(Struct, frozen=True):
    """Whether anything was changed, and since when an account is an operator."""

    handle: str
    changed: bool
    operator_since: int | None


@operator.changes(
    "folkmoot/set_operator",
    post(
        PATH + "/operator",
        "setOperator",
        "Make a person an operator, or not",
        example={"operator": True},
    ),
    errors=NOT_FOUND,
    local=True,
    audit=AuditSpec("account.operator_set", "handle", by_service=True),
    commands=("people operator",),
)
async def set_operator(
    call: Call,
    handle: Handle,
    *,
    reason: Reason = "",
    operator: Annotated[bool, "Whether they are an operator from now on."] = True,
) -> OperatorPerson:
    """Let a person run the hub in their browser, or no longer. What could run it is signed out at
    once when they no longer can, and tokens with that scope end.
    """
    services = call.services
    lines: list[Line] = []
    account = await find(services, handle)
    action = "account.operator_set" if operator else "account.operator_unset"
    changed = await services.accounts.set_operator(
        account, operator=operator, also=recording(call, action, lines, reason)
    )
    log(services, lines)
    now = await find(services, account.handle)
    return OperatorPerson(now.handle, changed, now.operator_since)


class RemovedPerson(Struct, frozen=True):
    """Who was removed."""

    handle: str


@operator.destroys(
    "folkmoot/remove_person",
    delete(PATH, "removeAccount", "Delete an account for good"),
    errors=NOT_FOUND,
    needs=("mail",),
    audit=AuditSpec("account.removed", "handle", by_service=True),
    commands=("people remove",),
)
async def remove_person(call: Call, handle: Handle, *, reason: Reason = "") -> RemovedPerson:
    """Permanently delete an account and all its mail. Messages in rooms stay, and older backups
    still contain the mail.
    """
    from folkmoot.rooms.access import leave_all_rooms

    services = call.services
    lines: list[Line] = []
    account = await find(services, handle)
    record = recording(call, "account.removed", lines, reason)

    async def farewell(tx: Tx, leaving: Account) -> None:
        await leave_all_rooms(tx, leaving)
        await record(tx, leaving)

    await services.mail.delete_account(account, also=farewell)
    log(services, lines)
    return RemovedPerson(account.handle)
