"""The rooms there are: who may know of which, and how they are made, changed and removed."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from folkmoot.accounts import Accounts
from folkmoot.core import errors as e
from folkmoot.core.ports import Clock, Store, Tx
from folkmoot.quotas import Quotas
from folkmoot.rooms import queries, queries_members, unread
from folkmoot.rooms.access import check_known, may_enter, require_owner, role_in
from folkmoot.rooms.backends import check_brought, check_likeness
from folkmoot.rooms.limits import MAX_LISTED
from folkmoot.rooms.live import LiveRoom
from folkmoot.rooms.loading import LiveRooms
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import (
    Membership,
    ReadRoom,
    RoomId,
    RoomPage,
    RoomRecord,
    RoomView,
    UnreadRoom,
    UnreadRooms,
    Visitor,
)
from folkmoot.rooms.options import RoomOptions, room_view, settings_of
from folkmoot.rooms.ports import Backends, RoomStatus
from folkmoot.rooms.remote import RemoteRoom
from folkmoot.rooms.spec import Capabilities, RoomPatch, RoomSpec, check_rights, check_room_name
from folkmoot.rooms.unread import New

T = TypeVar("T")

Listed: TypeAlias = list[queries.Seen]
Handles: TypeAlias = list[str]
Owners: TypeAlias = dict[RoomId, Handles]
Served: TypeAlias = dict[RoomId, tuple[str, ...]]


class _Resolved(NamedTuple):
    """Grants and owners of a room, by account."""

    grants: dict[str, Capabilities]
    owners: tuple[str, ...]


class Directory:
    """All rooms of a hub, as records. A `visitor` is whoever asks."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        accounts: Accounts,
        options: RoomOptions,
        live: LiveRooms,
        epoch: str,
        backends: Backends | None = None,
        quotas: Quotas | None = None,
    ) -> None:
        self.options = options
        self._quotas = quotas or Quotas()
        self._store = store
        self._clock = clock
        self._accounts = accounts
        self._live = live
        self._epoch = epoch
        self._backends = backends
        self._id = secrets.token_hex(8)
        """What tells our own changes from those of another hub on the same store."""
        self._changes: set[asyncio.Task[tuple[RoomRecord, Role]]] = set()

    async def find(self, visitor: Visitor, name: str) -> tuple[RoomRecord, Membership | None]:
        """The room with this name, and the visitor's membership."""
        check_room_name(name)
        account = visitor.principal.account_id

        async def query(tx: Tx) -> tuple[RoomRecord | None, Membership | None]:
            record = await queries.room_by_name(tx, name)
            if record is None or visitor.account is None:
                return record, None
            return record, await queries_members.membership(tx, record.id, account)

        record, membership = await self._store.read(query)
        if record is None:
            raise e.RoomNotFound("There is no such room.")
        check_known(record, membership, visitor)
        return record, membership

    async def find_in(self, visitor: Visitor, name: str) -> tuple[RoomRecord, Role]:
        """A room the visitor may come into, and as what."""
        record, membership = await self.find(visitor, name)
        return record, role_in(record, membership, visitor)

    async def remember(
        self, record: RoomRecord, membership: Membership | None, visitor: Visitor
    ) -> None:
        """Let an account that comes in be a member from now on."""
        if visitor.account is None or (membership is not None and membership.state == "member"):
            return
        account = visitor.principal.account_id

        async def unit(tx: Tx) -> None:
            # Put out while it was at the door, unless the account is gone.
            if not await queries_members.join(
                tx, record.id, account, record.last_seq
            ) and await queries_members.handles_of(tx, (account,)):
                raise e.RoomForbidden("You were removed from this room.")

        await self._store.write(unit)

    async def list(
        self, visitor: Visitor, *, limit: int = MAX_LISTED, cursor: str | None = None
    ) -> RoomPage:
        """The rooms a visitor may know of, by name."""
        if not 1 <= limit <= MAX_LISTED:
            raise e.ArgumentInvalid(f"limit must be from 1 to {MAX_LISTED}.", field="limit")
        if cursor is not None and len(cursor) > MAX_LISTED:
            raise e.ArgumentInvalid(
                "cursor must be the next_cursor of an earlier answer.", field="cursor"
            )
        account = visitor.principal.account_id

        async def query(tx: Tx) -> tuple[Listed, Owners, Served, dict[RoomId, New]]:
            if visitor.room_id is not None:
                record = await queries.room_by_id(tx, visitor.room_id)
                seen = [queries.Seen(record, None)] if record and not cursor else []
            else:
                seen = await queries.rooms_seen_by(tx, account, cursor or "", limit + 1)
            ids = [each.room.id for each in seen]
            owners = await queries_members.owners_by_room(tx, ids)
            backends = await queries.backends_by_room(tx, ids)
            return seen, owners, backends, await unread.new_in(tx, visitor, ids)

        seen, owners, backends, new = await self._store.read(query)
        statuses = await self._live.statuses([room.id for room, _ in seen[:limit]])
        views = [
            _with_invitation(
                self._view(
                    room,
                    statuses.get(room.id),
                    owners[room.id],
                    _role_shown(visitor, membership),
                    None,
                    backends[room.id],
                    new.get(room.id),
                    enter=may_enter(room, membership, visitor),
                ),
                membership,
            )
            for room, membership in seen[:limit]
        ]
        return RoomPage(views, views[-1].name if len(seen) > limit else None)

    async def create(self, visitor: Visitor, spec: RoomSpec) -> RoomView:
        """Make a room, whose owner the visitor is."""
        account = visitor.account
        if account is None:
            raise e.RoomForbidden("Guests cannot create rooms.")
        self._quotas.check_disk()
        check_brought(self._backends, visitor, spec.backends)
        check_likeness(spec.backends, (account.handle,))
        now = int(self._clock.now())

        async def unit(tx: Tx) -> RoomRecord:
            most = self.options.max_rooms_each
            if not await may_own_another(tx, account.id, most):
                raise e.TooManyRooms(
                    f"You already own {most} rooms.", setting="rooms.max_rooms_each"
                )
            grants = await self._resolve(tx, account.id, spec.grants)
            record = RoomRecord(
                id=0,
                name=spec.name,
                epoch=secrets.token_hex(4),
                access=spec.access,
                durable=spec.durable,
                capabilities=spec.capabilities,
                grants=grants,
                policy=spec.policy,
                first_seq=1,
                created_by=account.id,
                created_at=now,
                updated_at=now,
                owners=(account.id,),
            )
            made = await queries.insert_room(tx, record)
            if made is None:
                raise e.RoomNameTaken(f"A room called {spec.name} already exists.")
            await queries_members.put_membership(
                tx, Membership(made.id, account.id, Role.OWNER, "member")
            )
            await _invite(tx, made.id, grants)
            await queries.put_backends(tx, made.id, spec.backends)
            return made

        record = await self._store.write(unit)
        return await self.shown(visitor, record, Role.OWNER)

    async def get(self, visitor: Visitor, name: str) -> RoomView:
        """A room the visitor may know of."""
        record, membership = await self.find(visitor, name)
        role, enter = _role_shown(visitor, membership), may_enter(record, membership, visitor)
        return _with_invitation(await self.shown(visitor, record, role, enter=enter), membership)

    async def mark_read(self, visitor: Visitor, name: str, seq: int | None = None) -> ReadRoom:
        """Note that someone has read a room, all of it or up to a message; never less."""
        record, _ = await self.find_in(visitor, name)
        through = record.last_seq if seq is None else min(seq, record.last_seq)

        async def unit(tx: Tx) -> None:
            await unread.mark(tx, record.id, name, visitor, through)

        await self._store.write(unit, any_order=True)
        new = await self._store.read(lambda tx: unread.new_in(tx, visitor, [record.id]))
        return ReadRoom(name, *new.get(record.id, unread.New()))

    async def unread_rooms(self, visitor: Visitor) -> UnreadRooms:
        """What is new to an account in its rooms, and where it is invited."""
        account = visitor.principal.account_id
        found = await self._store.read(lambda tx: unread.new_anywhere(tx, account))
        rooms = [
            UnreadRoom(room, new.unread, new.mentions, invited)
            for room, invited, new in found
            if invited or new.unread or new.mentions
        ]
        rooms.sort(key=lambda one: (not one.invited, -one.mentions, -one.unread, one.room))
        return UnreadRooms(
            rooms,
            sum(one.unread for one in rooms),
            sum(one.mentions for one in rooms),
            sum(one.invited for one in rooms),
        )

    async def change(self, visitor: Visitor, name: str, patch: RoomPatch) -> RoomView:
        """Change a room; participants whose rights change are notified."""
        record, role = await self.find_in(visitor, name)
        require_owner(role)
        room = await self._live.open(record)
        if isinstance(room, RemoteRoom):
            await room.change(visitor, patch)
            record, role = await self.find_in(visitor, name)
            return await self.shown(visitor, record, role)
        live = await self._live.load(record)
        # A caller who gives up leaves nothing stored that is not in force, and the next change
        # waits for this one.
        changing = asyncio.create_task(self._change_in_turn(visitor, name, live, patch))
        self._changes.add(changing)
        changing.add_done_callback(self._changes.discard)
        return await self.shown(visitor, *await asyncio.shield(changing))

    async def _change_in_turn(
        self, visitor: Visitor, name: str, live: LiveRoom, patch: RoomPatch
    ) -> tuple[RoomRecord, Role]:
        async with live.changing:
            # Read again: another change may have come first.
            record, role = await self.find_in(visitor, name)
            require_owner(role)
            return await self._change(visitor, record, live, patch), role

    async def _change(
        self, visitor: Visitor, record: RoomRecord, live: LiveRoom, patch: RoomPatch
    ) -> RoomRecord:
        by, now = visitor.principal.account_id, int(self._clock.now())

        async def query(tx: Tx) -> tuple[_Resolved, Handles, tuple[str, ...]]:
            resolved = await self._resolve_patch(tx, by, record, patch)
            names = await queries_members.handles_of(tx, resolved.owners)
            return resolved, sorted(names.values()), await queries.backends_of_room(tx, record.id)

        resolved, owners, had = await self._store.read(query)
        backends = had
        if patch.backends is not msgspec.UNSET:
            backends = patch.backends
            check_brought(self._backends, visitor, sorted({*backends} - {*had}))
        if patch.backends is not msgspec.UNSET or patch.owners is not msgspec.UNSET:
            check_likeness(backends, owners)
        counts_for = record.created_by if record.created_by in resolved.owners else None
        changed = msgspec.structs.replace(
            record,
            access=record.access if patch.access is msgspec.UNSET else patch.access,
            capabilities=record.capabilities
            if patch.capabilities is msgspec.UNSET
            else patch.capabilities,
            grants=resolved.grants,
            policy=patch.change_policy(record.policy),
            created_by=counts_for or next(iter(resolved.owners), None),
            updated_at=now,
            owners=resolved.owners,
        )
        check_rights(changed.capabilities, changed.grants)

        async def also(tx: Tx) -> None:
            if not await queries.update_room(tx, changed):
                raise e.RoomUnavailable(
                    "Another hub changed the room at the same moment. Try again."
                )
            new = [id_ for id_, held in changed.grants.items() if record.grants.get(id_) != held]
            await _invite(tx, record.id, new)
            await self._put_owners(tx, record, resolved.owners)
            await queries.put_backends(tx, record.id, backends)
            queries.publish_change(tx, record.id, self._id)

        epoch = live.status.epoch
        kept = self.options.kept_messages(changed)
        await live.configure(settings_of(changed, self.options, epoch), kept, backends, also)
        if {*changed.owners} != {*record.owners}:
            live.audit(visitor.principal, "room.owners", ", ".join(owners))
            self._live.budget.forget()
        return changed

    async def _resolve_patch(
        self, tx: Tx, by: str, record: RoomRecord, patch: RoomPatch
    ) -> _Resolved:
        """The accounts behind the handles of a change; whoever was granted something is known."""
        grants, owners = record.grants, record.owners
        if patch.grants is not msgspec.UNSET:
            handles = await queries_members.handles_of(tx, list(record.grants))
            known = {handle: id_ for id_, handle in handles.items()}
            kept = {known[handle]: held for handle, held in patch.grants.items() if handle in known}
            new = {handle: held for handle, held in patch.grants.items() if handle not in known}
            both = {**kept, **await self._resolve(tx, by, new)}
            grants = {id_: held for id_, held in both.items() if held}
        if patch.owners is not msgspec.UNSET:
            owners = tuple([await self._owner(tx, record, handle) for handle in patch.owners])
        return _Resolved(grants, owners)

    async def _owner(self, tx: Tx, record: RoomRecord, handle: str) -> str:
        """The account of someone who can own a room: an owner stays one, a member becomes one."""
        known = await queries_members.known_as(tx, record.id, handle)
        if known is not None and known.account in record.owners:
            return known.account
        member = None
        if known is not None:
            member = await queries_members.membership(tx, record.id, known.account)
        if member is None or member.state != "member":
            raise e.ArgumentInvalid(
                f"owners: {handle} is not a member of the room; they must join it first.",
                field="owners",
            )
        if await queries_members.count_owned(tx, member.account_id) >= self.options.max_rooms_each:
            raise e.TooManyRooms(f"{handle} owns as many rooms as one account may own.")
        return member.account_id

    async def _put_owners(self, tx: Tx, record: RoomRecord, owners: Collection[str]) -> None:
        for account in sorted({*record.owners} - {*owners}):
            await queries_members.set_role(tx, record.id, account, Role.MEMBER)
        for account in sorted({*owners} - {*record.owners}):
            if not await may_own_another(tx, account, self.options.max_rooms_each):
                raise e.TooManyRooms("A new owner owns as many rooms as one account may own.")
            if not await queries_members.set_role(tx, record.id, account, Role.OWNER):
                raise e.RoomUnavailable("A new owner left the room at the same moment. Try again.")

    async def _resolve(self, tx: Tx, by: str, grants: Mapping[str, T]) -> dict[str, T]:
        """What handles are granted, by the accounts they lead to."""
        resolved: dict[str, T] = {}
        for handle, held in grants.items():
            try:
                resolved[(await self._accounts.reachable(tx, by, handle)).id] = held
            except e.UserNotFound:
                raise e.UserNotFound(f"grants: there is no user {handle}.") from None
        return resolved

    async def delete(self, visitor: Visitor, name: str) -> None:
        """Delete a room with its history; participants are put out."""
        record, role = await self.find_in(visitor, name)
        require_owner(role)
        gone = e.RoomNotFound("The room was removed.")
        self._live.end(record.id, gone)

        async def unit(tx: Tx) -> None:
            await queries.delete_room(tx, record.id)

        await self._store.write(unit)
        self._live.budget.forget()
        # Somebody may have come back before the record was gone.
        await self._live.end_loaded(record.id, gone)

    async def shown(
        self, visitor: Visitor, record: RoomRecord, role: Role | None, *, enter: bool = True
    ) -> RoomView:
        """A room as a visitor in this role sees it."""
        granted = list(record.grants) if role is Role.OWNER else None

        async def query(
            tx: Tx,
        ) -> tuple[Handles, dict[str, str] | None, tuple[str, ...], New | None]:
            owners = await queries_members.owners_of(tx, record.id)
            handles = None if granted is None else await queries_members.handles_of(tx, granted)
            new = (await unread.new_in(tx, visitor, [record.id])).get(record.id)
            return owners, handles, await queries.backends_of_room(tx, record.id), new

        owners, handles, backends, new = await self._store.read(query)
        status = (await self._live.statuses([record.id])).get(record.id)
        return self._view(record, status, owners, role, handles, backends, new, enter=enter)

    def _view(
        self,
        record: RoomRecord,
        status: RoomStatus | None,
        owners: Handles,
        role: Role | None,
        handles: dict[str, str] | None,
        backends: tuple[str, ...],
        new: New | None,
        *,
        enter: bool,
    ) -> RoomView:
        epoch = f"{record.epoch}.{self._epoch}" if record.durable else ""
        if status is not None:
            epoch = status.epoch
        view = room_view(
            record, status, role, owners, self.options, epoch, handles, backends, may_enter=enter
        )
        return view if new is None else msgspec.structs.replace(view, **new._asdict())


def _with_invitation(view: RoomView, membership: Membership | None) -> RoomView:
    invited = membership is not None and membership.state == "invited"
    return msgspec.structs.replace(view, invited=True) if invited else view


def _role_shown(visitor: Visitor, membership: Membership | None) -> Role | None:
    if visitor.room_id is not None:
        return Role.GUEST
    return None if membership is None or membership.state != "member" else membership.role


async def may_own_another(tx: Tx, account_id: str, most: int) -> bool:
    """Whether an account may own one room more; of two units at once, one sees the other's."""
    await queries_members.lock_account(tx, account_id)
    return await queries_members.count_owned(tx, account_id) < most


async def _invite(tx: Tx, room_id: RoomId, accounts: Iterable[str]) -> None:
    """Let those who are granted something come in, unless they were put out."""
    for account in accounts:
        await queries_members.invite(tx, room_id, account, banned=False)
