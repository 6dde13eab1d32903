"""Accounts as the operator sees them: list, add, suspend, restore, remove.

Each change is stored with its line in the audit log. Where no hub runs, the next one logs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Struct

from folkmoot.accounts.model import PersonRow
from folkmoot.core import errors as e
from folkmoot.names.grammar import parse_handle
from folkmoot.operations.limits import MAX_OPERATOR_PAGE
from folkmoot.operations.operator.hub import Use
from folkmoot.operations.row import (
    After,
    Arguments,
    AuditSpec,
    Handle,
    Reason,
    Route,
    describe,
    operated,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from folkmoot.accounts import Account
    from folkmoot.audit import Line
    from folkmoot.core.ports import Tx
    from folkmoot.operations.call import Call, Services


class ListPeople(Arguments, frozen=True, kw_only=True):
    """After which handle, and whether those alone who are suspended."""

    after: After = ""
    suspended: Annotated[bool, describe("Only suspended accounts.")] = False
    text: (
        Annotated[str, describe("Only those whose handle or name has this text.", max_length=100)]
        | None
    ) = None


class AddPerson(Arguments, frozen=True, kw_only=True):
    """Under which handle."""

    handle: Handle
    account_type: Annotated[
        Literal["person", "agent"], describe("Whether a person uses it, or a program.")
    ] = "person"


class OnePerson(Arguments, frozen=True, kw_only=True):
    """Whom, and why."""

    handle: Handle
    reason: Reason = ""


class SetOperator(OnePerson, frozen=True, kw_only=True):
    """Whom, whether they run the hub, and why."""

    operator: Annotated[bool, describe("Whether they are an operator from now on.")] = True


class OperatorPerson(Struct, frozen=True):
    """Whether anything was changed, and since when an account is an operator."""

    handle: str
    changed: bool
    operator_since: int | None


class PersonRows(Struct, frozen=True):
    """A page of accounts by handle."""

    people: list[PersonRow]
    next: str | None


class WhichPerson(Arguments, frozen=True, kw_only=True):
    """Whom."""

    handle: Handle


class PersonDetails(PersonRow, frozen=True, kw_only=True):
    """One account as the operator sees it."""

    bio: str
    privacy: str
    quotas: dict[str, Use]
    """How much of each of its quotas is used: bytes of `mail` and `rooms`, and `tokens`."""


class AddedPerson(Struct, frozen=True):
    """A new account, and what opens it; neither secret is shown again."""

    handle: str
    token: str
    recovery_code: str
    hub: str


class SuspendedPerson(Struct, frozen=True):
    """Whether an account was changed, and since when it is suspended."""

    handle: str
    changed: bool
    suspended_at: int | None


class RemovedPerson(Struct, frozen=True):
    """Who was removed."""

    handle: str


async def people(call: Call[ListPeople]) -> PersonRows:
    """A page of accounts."""
    given = call.arguments
    found = await call.services.accounts.list_people(
        given.after, MAX_OPERATOR_PAGE, suspended=given.suspended, text=given.text or ""
    )
    return PersonRows(found, found[-1].handle if len(found) == MAX_OPERATOR_PAGE else None)


async def person(call: Call[WhichPerson]) -> PersonDetails:
    """One account, and how much of its quotas it uses."""
    accounts = call.services.accounts
    account = await find(call.services, call.arguments.handle)
    row = await accounts.person_row(account)
    quotas = await accounts.quotas_of(account.id, tokens=True)
    return PersonDetails(
        **msgspec.structs.asdict(row),
        bio=account.bio,
        privacy=account.privacy,
        quotas={name: Use(**use) for name, use in quotas.items()},
    )


async def add_person(call: Call[AddPerson]) -> AddedPerson:
    """Make an account, without invitation and without limits."""
    services, given = call.services, call.arguments
    lines: list[Line] = []
    made = await services.accounts.add(
        given.handle,
        account_type=given.account_type,
        also=recording(call, "account.added", lines),
    )
    log(services, lines)
    hub = services.url.rstrip("/")
    return AddedPerson(made.account.handle, made.token, made.recovery_code, hub)


async def suspend_person(call: Call[OnePerson]) -> SuspendedPerson:
    """Let nobody use an account."""
    return await set_suspended(call, suspended=True)


async def restore_person(call: Call[OnePerson]) -> SuspendedPerson:
    """Let an account be used again."""
    return await set_suspended(call, suspended=False)


async def set_suspended(call: Call[OnePerson], *, suspended: bool) -> SuspendedPerson:
    """Suspend or restore an account, unless it is already."""
    services, reason = call.services, call.arguments.reason
    lines: list[Line] = []
    account = await find(services, call.arguments.handle)
    if (account.suspended_at is not None) != suspended:
        action = "account.suspended" if suspended else "account.restored"
        account = await services.accounts.suspend(
            account, suspended=suspended, also=recording(call, action, lines, reason)
        )
    log(services, lines)
    return SuspendedPerson(account.handle, bool(lines), account.suspended_at)


async def set_operator(call: Call[SetOperator]) -> OperatorPerson:
    """Let a person run the hub in a browser, or no longer."""
    services, given = call.services, call.arguments
    lines: list[Line] = []
    account = await find(services, given.handle)
    action = "account.operator_set" if given.operator else "account.operator_unset"
    changed = await services.accounts.set_operator(
        account, operator=given.operator, also=recording(call, action, lines, given.reason)
    )
    log(services, lines)
    now = await find(services, account.handle)
    return OperatorPerson(now.handle, changed, now.operator_since)


async def remove_person(call: Call[OnePerson]) -> RemovedPerson:
    """Delete an account as its owner would, with its mail and its memberships of rooms."""
    from folkmoot.rooms.access import leave_all_rooms

    services, reason = call.services, call.arguments.reason
    lines: list[Line] = []
    account = await find(services, call.arguments.handle)
    record = recording(call, "account.removed", lines, reason)

    async def farewell(tx: Tx, leaving: Account) -> None:
        await leave_all_rooms(tx, leaving)
        await record(tx, leaving)

    await services.mail.delete_account(account, also=farewell)
    log(services, lines)
    return RemovedPerson(account.handle)


async def find(services: Services, handle: str) -> Account:
    from folkmoot.accounts.queries import by_handle

    name = parse_handle(handle)
    if name is None:
        raise e.CommandInvalid(f"{handle!r} is not a valid handle.")
    now = int(services.clock.now())
    account = await services.store.read(lambda tx: by_handle(tx, name, now))
    if account is None:
        raise e.UserNotFound(f"Nobody has the handle @{name}.")
    if account.handle != name:
        raise e.UserNotFound(f"@{name} is @{account.handle} now; use that handle.")
    return account


def recording(
    call: Call[Any], action: str, lines: list[Line], reason: str = ""
) -> Callable[[Tx, Account], Awaitable[None]]:
    """What stores the audit line in the change's own transaction, and keeps it for the log."""
    from folkmoot import audit

    services, by = call.services, call.caller.account

    async def record(tx: Tx, account: Account) -> None:
        now = services.clock.now()
        at = int(now) if services.offline else None
        # A unit may be run again: the last line is the one that was committed.
        lines[:] = [audit.by_operator(action, by, account.handle, account.id, reason or None, at)]
        await audit.record(tx, lines, now, offline=services.offline)

    return record


def log(services: Services, lines: list[Line]) -> None:
    """Write lines to the log; without a hub this process has none, and the next hub logs them."""
    if not services.offline:
        for line in lines:
            line.log()


PEOPLE = (
    operated(
        name="folkmoot/people",
        description="List everyone who has an account, and what they store.",
        handler=people,
        needs=("accounts",),
        routes=(Route("GET", "/v1/accounts", "listAccounts", "List all accounts"),),
        commands=("people list",),
    ),
    operated(
        name="folkmoot/person",
        description="Show one account: its state, and how much of its quotas it uses.",
        handler=person,
        errors=(e.CommandInvalid, e.UserNotFound),
        needs=("accounts",),
        routes=(Route("GET", "/v1/accounts/{handle}", "getAccountOf", "Show an account"),),
        commands=("people show",),
    ),
    operated(
        name="folkmoot/add_person",
        description="Create an account, without an invitation or limits. The token and the "
        "recovery code are not shown again.",
        handler=add_person,
        errors=(e.HandleInvalid, e.HandleTaken),
        needs=("accounts",),
        audit=AuditSpec("account.added", "handle", by_service=True),
        routes=(
            Route(
                "PUT",
                "/v1/accounts/{handle}",
                "addAccount",
                "Create an account",
                status=201,
                example={"account_type": "agent"},
            ),
        ),
        commands=("people add",),
    ),
    operated(
        name="folkmoot/suspend",
        description="Lock an account until it is restored. Its tokens stop working and its "
        "connections are closed immediately; nothing is deleted, and mail to it still arrives.",
        handler=suspend_person,
        errors=(e.CommandInvalid, e.UserNotFound),
        needs=("accounts",),
        audit=AuditSpec("account.suspended", "handle", by_service=True),
        routes=(
            Route(
                "POST",
                "/v1/accounts/{handle}/suspend",
                "suspendAccount",
                "Suspend an account",
                example={"reason": "asked to"},
            ),
        ),
        commands=("people suspend",),
    ),
    operated(
        name="folkmoot/restore",
        description="Unlock a suspended account; its tokens work again.",
        handler=restore_person,
        errors=(e.CommandInvalid, e.UserNotFound),
        needs=("accounts",),
        audit=AuditSpec("account.restored", "handle", by_service=True),
        routes=(
            Route(
                "POST",
                "/v1/accounts/{handle}/restore",
                "restoreAccount",
                "Restore a suspended account",
                example={"reason": "asked to"},
            ),
        ),
        commands=("people restore",),
    ),
    operated(
        name="folkmoot/set_operator",
        description="Let a person run the hub in their browser, or no longer. What could run it "
        "is signed out at once when they no longer can, and tokens with that scope end.",
        handler=set_operator,
        errors=(e.CommandInvalid, e.UserNotFound),
        needs=("accounts",),
        local=True,
        audit=AuditSpec("account.operator_set", "handle", by_service=True),
        routes=(
            Route(
                "POST",
                "/v1/accounts/{handle}/operator",
                "setOperator",
                "Make a person an operator, or not",
                example={"operator": True},
            ),
        ),
        commands=("people operator",),
    ),
    operated(
        name="folkmoot/remove_person",
        description="Permanently delete an account and all its mail. Messages in rooms stay, and "
        "older backups still contain the mail.",
        handler=remove_person,
        errors=(e.CommandInvalid, e.UserNotFound),
        needs=("mail",),
        audit=AuditSpec("account.removed", "handle", by_service=True),
        routes=(
            Route("DELETE", "/v1/accounts/{handle}", "removeAccount", "Delete an account for good"),
        ),
        commands=("people remove",),
    ),
)
