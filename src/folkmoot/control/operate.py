"""The commands for whoever runs the hub: its people, its rooms, its audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from folkmoot import audit
from folkmoot.accounts import parse_handle
from folkmoot.accounts.queries import by_handle
from folkmoot.audit import OPERATOR, Line
from folkmoot.control.commands import convert
from folkmoot.core.errors import CommandInvalid, UserNotFound
from folkmoot.rooms.farewell import leave_all_rooms
from folkmoot.rooms.queries_operator import rooms_overview

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from folkmoot.accounts import Account, Accounts
    from folkmoot.control.wire import Command, Progress
    from folkmoot.core.ports import Clock, Store, Tx
    from folkmoot.mail import Mail

PEOPLE_LIST: Final = "people.list"
PEOPLE_ADD: Final = "people.add"
PEOPLE_SUSPEND: Final = "people.suspend"
PEOPLE_RESTORE: Final = "people.restore"
PEOPLE_REMOVE: Final = "people.remove"
ROOMS_LIST: Final = "rooms.list"
AUDIT_READ: Final = "audit.read"

PAGE: Final = 200
MOST_REASON: Final = 500


class ListPeople(msgspec.Struct, forbid_unknown_fields=True):
    """After which handle, and whether those alone who are suspended."""

    after: str = ""
    suspended: bool = False


class AddPerson(msgspec.Struct, forbid_unknown_fields=True):
    """Under which handle."""

    handle: str
    account_type: Literal["person", "agent"] = "person"


class OnePerson(msgspec.Struct, forbid_unknown_fields=True):
    """Whom, and why."""

    handle: str
    reason: Annotated[str, Meta(max_length=MOST_REASON)] = ""


class ListRooms(msgspec.Struct, forbid_unknown_fields=True):
    """After which name."""

    after: str = ""


class ReadAudit(msgspec.Struct, forbid_unknown_fields=True):
    """Which lines."""

    limit: Annotated[int, Meta(ge=1, le=audit.MOST_READ)] = 50
    before: int | None = None
    since: float | None = None
    by: str | None = None
    action: str | None = None
    room: str | None = None
    about: str | None = None


class People:
    """What an operator does about accounts; each change is stored with its audit line."""

    def __init__(
        self, store: Store, clock: Clock, accounts: Accounts, mail: Mail, *, offline: bool = False
    ) -> None:
        self._store = store
        self._clock = clock
        self._accounts = accounts
        self._mail = mail
        self._offline = offline

    async def page(self, after: str, *, suspended: bool) -> dict[str, Any]:
        """A page of accounts by handle."""
        found = await self._accounts.list_people(after, PAGE, suspended=suspended)
        return {"people": found, "next": found[-1].handle if len(found) == PAGE else None}

    async def add(self, handle: str, account_type: Literal["person", "agent"]) -> dict[str, Any]:
        """Make an account, without invitation and without limits."""
        lines: list[Line] = []
        made = await self._accounts.add(
            handle, account_type=account_type, also=self._told("account.added", lines)
        )
        self._log(lines)
        return {
            "handle": made.account.handle,
            "token": made.token,
            "recovery_code": made.recovery_code,
        }

    async def suspend(self, handle: str, reason: str, *, suspended: bool) -> dict[str, Any]:
        """Let nobody use an account, or let it be used again."""
        account = await self._find(handle)
        before = account.suspended_at
        lines: list[Line] = []
        if (before is not None) != suspended:
            action = "account.suspended" if suspended else "account.restored"
            account = await self._accounts.suspend(
                account, suspended=suspended, also=self._told(action, lines, reason or None)
            )
        self._log(lines)
        return {
            "handle": account.handle,
            "changed": bool(lines),
            "suspended_at": account.suspended_at,
        }

    async def remove(self, handle: str, reason: str) -> dict[str, Any]:
        """Delete an account as its owner would: with its mail and its place in every room."""
        account = await self._find(handle)
        lines: list[Line] = []
        told = self._told("account.removed", lines, reason or None)

        async def farewell(tx: Tx, leaving: Account) -> None:
            await leave_all_rooms(tx, leaving)
            await told(tx, leaving)

        await self._mail.delete_account(account, also=farewell)
        self._log(lines)
        return {"handle": account.handle}

    async def _find(self, handle: str) -> Account:
        name = parse_handle(handle)
        if name is None:
            raise CommandInvalid(f"{handle!r} is not a valid handle.")
        now = int(self._clock.now())
        account = await self._store.read(lambda tx: by_handle(tx, name, now))
        if account is None:
            raise UserNotFound(f"Nobody has the handle @{name}.")
        if account.handle != name:
            raise UserNotFound(f"@{name} is @{account.handle} now; use that handle.")
        return account

    def _told(
        self, action: str, lines: list[Line], detail: str | None = None
    ) -> Callable[[Tx, Account], Awaitable[None]]:
        """What stores the audit line in the change's own transaction, and keeps it for the log."""

        async def record(tx: Tx, account: Account) -> None:
            at = int(self._clock.now()) if self._offline else None
            # A unit may be run again: the last line is the one that was committed.
            lines[:] = [Line(action, OPERATOR, account.handle, account.id, detail, at)]
            await audit.record(tx, lines, self._clock.now(), offline=self._offline)

        return record

    def _log(self, lines: list[Line]) -> None:
        if not self._offline:
            for line in lines:
                line.log()


def operator_commands(
    people: People, store: Store, url: str, present: Callable[[], dict[str, int]] = dict
) -> dict[str, Command]:
    """What an operator can ask about people, rooms and the audit log.

    `url` is where clients reach the hub; `present` tells how many are in each room now.
    """

    async def list_people(arguments: dict[str, Any], _progress: Progress) -> Any:
        given = convert(arguments, ListPeople)
        return await people.page(given.after, suspended=given.suspended)

    async def add(arguments: dict[str, Any], _progress: Progress) -> Any:
        given = convert(arguments, AddPerson)
        return {**await people.add(given.handle, given.account_type), "hub": url.rstrip("/")}

    async def suspend(arguments: dict[str, Any], _progress: Progress) -> Any:
        given = convert(arguments, OnePerson)
        return await people.suspend(given.handle, given.reason, suspended=True)

    async def restore(arguments: dict[str, Any], _progress: Progress) -> Any:
        given = convert(arguments, OnePerson)
        return await people.suspend(given.handle, given.reason, suspended=False)

    async def remove(arguments: dict[str, Any], _progress: Progress) -> Any:
        given = convert(arguments, OnePerson)
        return await people.remove(given.handle, given.reason)

    async def list_rooms(arguments: dict[str, Any], _progress: Progress) -> Any:
        given = convert(arguments, ListRooms)
        found = await store.read(lambda tx: rooms_overview(tx, given.after, PAGE), long=True)
        here = present()
        rooms = [
            {**msgspec.structs.asdict(room), "present": here.get(room.name, 0)} for room in found
        ]
        return {"rooms": rooms, "next": found[-1].name if len(found) == PAGE else None}

    async def read(arguments: dict[str, Any], _progress: Progress) -> Any:
        given = convert(arguments, ReadAudit)
        wanted = audit.Wanted(**msgspec.structs.asdict(given))
        return {"lines": await store.read(lambda tx: audit.read(tx, wanted), long=True)}

    return {
        PEOPLE_LIST: list_people,
        PEOPLE_ADD: add,
        PEOPLE_SUSPEND: suspend,
        PEOPLE_RESTORE: restore,
        PEOPLE_REMOVE: remove,
        ROOMS_LIST: list_rooms,
        AUDIT_READ: read,
    }
