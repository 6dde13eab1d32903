"""A hub as programs use it: a method for each operation that has a route."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Self

import msgspec

import folkmoot.operations as ops
from folkmoot.client.asking import Method, bound, lenient, read_answer, request_for
from folkmoot.client.http import refusal
from folkmoot.client.limits import ANSWER_SECONDS
from folkmoot.client.transports import (
    Events,
    HubAnswer,
    HubRequest,
    Tcp,
    Transport,
)
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from collections.abc import Callable
    from ssl import SSLContext

    from folkmoot.client.transports import OnEvent
    from folkmoot.operations.declare import Served

UNAUTHORISED = 401
NO_CONTENT = 204


class Hub:
    """A hub, asked at its address with a token or without one; or by another transport.

    Methods wait for their answer; in asyncio, call them with `asyncio.to_thread`.
    """

    def __init__(
        self, where: str | Transport, token: str = "", *, ssl: SSLContext | None = None
    ) -> None:
        self.transport = Tcp(where, ssl=ssl) if isinstance(where, str) else where
        self.token = token
        self.renew: Callable[[str], str] | None = None
        """Gets another token in place of one that is refused."""
        self.seconds: float | None = ANSWER_SECONDS
        """How long the hub may say nothing."""
        self._for_others = False
        self._handle: str | None = None
        self._into: IO[bytes] | None = None
        self._on_progress: Callable[[dict[str, Any]], None] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.transport.name}>"

    @property
    def url(self) -> str:
        """The hub's address."""
        return self.transport.name

    @property
    def is_told(self) -> bool:
        """Whether someone wants to know how far the hub is."""
        return self._on_progress is not None

    def of(self, handle: str | None) -> Self:
        """The hub as its operator asks it about someone; with None, about everyone."""
        other = copy(self)
        other._for_others, other._handle = True, handle
        return other

    def into(self, file: IO[bytes]) -> Self:
        """The hub with answers that are files written into one."""
        other = copy(self)
        other._into = file
        return other

    def telling(self, on_progress: Callable[[dict[str, Any]], None]) -> Self:
        """The hub with what it tells of long work passed on."""
        other = copy(self)
        other._on_progress = on_progress
        return other

    def perform(
        self,
        served: Served[..., Any],
        args: tuple[Any, ...],
        given: dict[str, Any],
        gives: Any = None,
    ) -> Any:
        """What an operation answers, as its own struct or as what the caller `gives`."""
        row = served.as_routed(others=self._for_others)
        members = bound(served.function, args, given)
        if self._handle is not None:
            members["handle"] = self._handle
        wait = members.get(row.waits, 0) if row.waits else 0
        request = request_for(row, members, self.token)
        answer = self.send(request, self.seconds and self.seconds + wait)
        if answer.failed:
            raise self.refused(answer.status, self.read(answer))
        if answer.status == NO_CONTENT:
            return row.gives()
        if self._into is not None:
            return None
        try:
            return read_answer(answer.body, gives or lenient(row.gives))
        except ValueError:
            self.read(answer)
            raise self.not_understood() from None

    def follow(self, on_event: OnEvent, after: str = "") -> None:
        """Call `on_event` with each event that comes: its name, its id and its data.

        The first has no name: its id is where the stream begins. With the id of the last one,
        `after`, another stream goes on where one broke.
        """
        members = {"last_event_id": after} if after else {}
        request = request_for(ops.events.follow_events.as_routed(), members, self.token)
        answer = self.send(request, self.seconds, partial(Events, on_event))
        if answer.failed:
            raise self.refused(answer.status, self.read(answer))

    def exchange(
        self, method: str, path: str, body: bytes, headers: dict[str, str], seconds: float
    ) -> tuple[int, Any]:
        """One request that is no operation: the status and the JSON of its answer."""
        answer = self.send(HubRequest(method, path, headers, body), seconds)
        return answer.status, self.read(answer)

    def send(
        self,
        request: HubRequest,
        seconds: float | None,
        reads: Callable[..., HubAnswer] = HubAnswer,
    ) -> HubAnswer:
        """The answer to a request; with another token where the present one is refused."""
        answer = reads(self.transport.most, self._into, self._on_progress)
        self.transport.send(request, answer, seconds)
        if answer.status != UNAUTHORISED or self.renew is None:
            return answer
        renew, self.renew = self.renew, None
        try:
            self.token = renew(self.token)
            request.headers["authorization"] = f"Bearer {self.token}"
            return self.send(request, seconds, reads)
        finally:
            self.renew = renew

    def refused(self, status: int, answer: Any) -> e.FolkmootError:  # noqa: ARG002 - for those who say it otherwise
        """A refusal as an error that can be raised."""
        error = answer.get("error") if isinstance(answer, dict) else None
        if not isinstance(error, dict):
            return self.not_understood()
        return refusal({**error, "error": error.get("code")})

    def read(self, answer: HubAnswer) -> Any:
        """The JSON of an answer."""
        try:
            return msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, RecursionError):
            raise e.AnswerInvalid(
                f"{self.url}: what answers there ({answer.status}) is not a hub. Is the address "
                "right?"
            ) from None

    def not_understood(self) -> e.FolkmootError:
        """The error for an answer of another shape."""
        return e.AnswerInvalid(f"{self.url}: the hub's answer cannot be understood.")

    create_account = Method(lambda: ops.registration.register)
    recover_account = Method(lambda: ops.registration.recover)

    get_account = Method(lambda: ops.accounts.whoami)
    change_profile = Method(lambda: ops.accounts.set_profile)
    change_handle = Method(lambda: ops.accounts.change_handle)
    delete_account = Method(lambda: ops.accounts.delete_account)
    export_me = Method(lambda: ops.accounts.export_me)

    send_message = Method(lambda: ops.mail.send)
    list_messages = Method(lambda: ops.mail.inbox)
    reply_to_message = Method(lambda: ops.mail.reply)
    delete_message = Method(lambda: ops.mail.delete_message)

    list_threads = Method(lambda: ops.threads.threads)
    read_thread = Method(lambda: ops.threads.thread)
    get_digest = Method(lambda: ops.threads.digest)
    delete_thread = Method(lambda: ops.threads.delete_thread)
    mark_read = Method(lambda: ops.threads.mark_read)
    archive_thread = Method(lambda: ops.threads.archive)
    star_thread = Method(lambda: ops.threads.star)
    mute_thread = Method(lambda: ops.threads.mute)

    list_contacts = Method(lambda: ops.people.contacts)
    add_contact = Method(lambda: ops.people.add_contact)
    remove_contact = Method(lambda: ops.people.remove_contact)
    look_up = Method(lambda: ops.people.lookup)
    search_people = Method(lambda: ops.people.search_users)
    block = Method(lambda: ops.people.block)
    list_blocks = Method(lambda: ops.people.blocks)
    create_invite = Method(lambda: ops.people.invite)

    list_my_invites = Method(lambda: ops.invites.my_invites)
    withdraw_my_invite = Method(lambda: ops.invites.withdraw_my_invite)

    list_rooms = Method(lambda: ops.rooms.membership.list_whole)
    create_ask = Method(lambda: ops.asking.create)
    get_ask = Method(lambda: ops.asking.result)
    decide_ask = Method(lambda: ops.asking.decide)
    edit_ask = Method(lambda: ops.asking.edit)
    list_lasting_asks = Method(lambda: ops.asking.lasting)
    stop_ask = Method(lambda: ops.asking.stop)
    withdraw_ask = Method(lambda: ops.asking.withdraw)
    create_room = Method(lambda: ops.rooms.membership.create)

    read_messages = Method(lambda: ops.rooms.messages.read_whole)
    mark_room_read = Method(lambda: ops.rooms.messages.mark_read)
    list_unread = Method(lambda: ops.rooms.messages.unread_rooms)
    post_message = Method(lambda: ops.rooms.messages.post_message)

    list_room_tools = Method(lambda: ops.rooms.calls.tools)

    list_proposals = Method(lambda: ops.rooms.proposals.list_whole)
    get_proposal = Method(lambda: ops.rooms.proposals.show)
    list_waiting = Method(lambda: ops.rooms.proposals.waiting)
    approve_proposal = Method(lambda: ops.rooms.proposals.approve)
    reject_proposal = Method(lambda: ops.rooms.proposals.reject)

    invite = Method(lambda: ops.rooms.invitations.invite)
    list_invitations = Method(lambda: ops.rooms.invitations.invitations)
    withdraw_invitation = Method(lambda: ops.rooms.invitations.withdraw_invitation)

    get_room = Method(lambda: ops.rooms.settings.show)
    change_room = Method(lambda: ops.rooms.settings.change)
    delete_room = Method(lambda: ops.rooms.settings.delete_room)
    list_participants = Method(lambda: ops.rooms.settings.participants)
    exchange_invitation = Method(lambda: ops.rooms.settings.enter_as_guest)

    list_rights = Method(lambda: ops.rooms.rights.show)
    grant_in_room = Method(lambda: ops.rooms.rights.grant)
    revoke_in_room = Method(lambda: ops.rooms.rights.revoke)
    kick = Method(lambda: ops.rooms.rights.kick)

    list_asks = Method(lambda: ops.asks.asks)
    list_decisions = Method(lambda: ops.asks.decisions)

    list_credentials = Method(lambda: ops.tokens.tokens)
    create_credential = Method(lambda: ops.tokens.create_token)
    revoke_credential = Method(lambda: ops.tokens.revoke_token)

    read_activity = Method(lambda: ops.activity.activity)

    create_code = Method(lambda: ops.sessions.create_code)

    describe = Method(lambda: ops.finder.openapi)

    list_my_servers = Method(lambda: ops.servers.my_servers)
    list_my_tools = Method(lambda: ops.servers.my_tools)
    call_tool = Method(lambda: ops.servers.try_tool)

    list_connections = Method(lambda: ops.connections.connections)
    begin_connection = Method(lambda: ops.connections.begin)
    forget_connection = Method(lambda: ops.connections.forget)

    list_tapes = Method(lambda: ops.tapes.tapes)
    read_tape = Method(lambda: ops.tapes.read_tape)
    get_tape = Method(lambda: ops.tapes.tape_about)
    list_tape_messages = Method(lambda: ops.tapes.tape_timeline)
    get_tape_message = Method(lambda: ops.tapes.tape_message)
    list_tape_calls = Method(lambda: ops.tapes.tape_calls)
    download_tape = Method(lambda: ops.tapes.download_tape)

    get_status = Method(lambda: ops.operator.hub.status)
    check_database = Method(lambda: ops.operator.hub.check)
    get_settings = Method(lambda: ops.operator.hub.settings)
    list_all_rooms = Method(lambda: ops.operator.hub.rooms)
    list_nodes = Method(lambda: ops.operator.hub.nodes)
    drain_node = Method(lambda: ops.operator.hub.drain)
    read_audit = Method(lambda: ops.operator.hub.read_audit)

    list_accounts = Method(lambda: ops.operator.people.people)
    get_account_of = Method(lambda: ops.operator.people.person)
    add_account = Method(lambda: ops.operator.people.add_person)
    suspend_account = Method(lambda: ops.operator.people.suspend_person)
    restore_account = Method(lambda: ops.operator.people.restore_person)
    set_operator = Method(lambda: ops.operator.people.set_operator)
    remove_account = Method(lambda: ops.operator.people.remove_person)

    list_grants = Method(lambda: ops.operator.grants.grants)
    get_grants = Method(lambda: ops.operator.grants.grants_of)
    grant = Method(lambda: ops.operator.grants.grant)
    revoke = Method(lambda: ops.operator.grants.revoke)
    get_access_of = Method(lambda: ops.operator.grants.access_of)
    set_access_of = Method(lambda: ops.operator.grants.set_access)
    judge_call = Method(lambda: ops.operator.grants.judge_call)
    invite_for = Method(lambda: ops.operator.grants.invite_for)

    list_groups = Method(lambda: ops.operator.groups.groups)
    set_group = Method(lambda: ops.operator.groups.set_group)
    remove_group = Method(lambda: ops.operator.groups.remove_group)
    set_group_access = Method(lambda: ops.operator.groups.set_group_access)

    list_servers = Method(lambda: ops.operator.servers.servers)
    reload_settings = Method(lambda: ops.operator.servers.reload)
    list_pins = Method(lambda: ops.operator.servers.pins)
    accept_tools = Method(lambda: ops.operator.servers.accept)
    get_server = Method(lambda: ops.operator.servers.show_server)
    get_server_history = Method(lambda: ops.operator.servers.history)
    get_server_access = Method(lambda: ops.operator.servers.server_access)

    test_server = Method(lambda: ops.operator.server_edits.try_server)
    add_server = Method(lambda: ops.operator.server_edits.add_server)
    remove_server = Method(lambda: ops.operator.server_edits.remove_server)
    set_server = Method(lambda: ops.operator.server_edits.set_server)
    restart_server = Method(lambda: ops.operator.server_edits.restart_server)

    change_settings = Method(lambda: ops.operator.settings_edits.change_settings)
    list_rules = Method(lambda: ops.operator.settings_edits.rules)
    add_rule = Method(lambda: ops.operator.settings_edits.add_rule)
    remove_rule = Method(lambda: ops.operator.settings_edits.remove_rule)

    list_held = Method(lambda: ops.operator.held.held_list)
    get_held = Method(lambda: ops.operator.held.held_show)
    release_held = Method(lambda: ops.operator.held.held_release)
    drop_held = Method(lambda: ops.operator.held.held_drop)

    list_backups = Method(lambda: ops.operator.data.kept_backups)
    back_up_now = Method(lambda: ops.operator.data.back_up_now)
    back_up = Method(lambda: ops.operator.data.backup)
    export_account = Method(lambda: ops.operator.data.export_person)
    get_key = Method(lambda: ops.operator.data.key)
    rotate_key = Method(lambda: ops.operator.data.rotate_key)
    cancel_rotation = Method(lambda: ops.operator.data.cancel_rotation)
