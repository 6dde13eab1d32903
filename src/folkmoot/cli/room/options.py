"""The options of the room commands, and as whom someone uses a room."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
import typer

from folkmoot.cli.commands import Command, Lazy, every, with_json_option, with_options
from folkmoot.cli.credentials import (
    AsOption,
    Keyring,
    Login,
    UrlOption,
    checked_handle,
    fresh,
    hub_at,
    hub_for_login,
    login_from_environment,
    read_keyring,
    token_source,
)
from folkmoot.cli.options import (
    argument,
    choice,
    flag,
    number,
    option,
)
from folkmoot.core import errors as e
from folkmoot.core.mcpx import PROTOCOL

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.operations.rooms.settings import ParticipantView
    from folkmoot.rooms.model import ProposalView


ROOM_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
ACCESS: Final = ("open", "invite", "private")
STATES: Final = ("open", "fulfilled", "rejected", "withdrawn", "expired")
LAST_SEQ: Final = 999_999_999
MOST_SECONDS: Final = 999_999_999


def checked_room(value: str) -> str:
    """A room's name, checked before the command begins."""
    if ROOM_NAME.fullmatch(value):
        return value
    raise typer.BadParameter(
        "must be 1 to 64 lower-case letters, digits, dots, underscores and hyphens, beginning "
        f"with a letter or a digit, not {value!r}"
    )


def room_argument(what: str) -> Any:
    """The argument that names a room."""
    return typer.Argument(metavar="NAME", help=what, callback=checked_room, show_default=False)


RoomArgument = Annotated[str, room_argument("The room.")]
NewRoomArgument = Annotated[
    str,
    room_argument("Lower-case letters, digits, dots, underscores and hyphens; at most 64."),
]
AccessOption = Annotated[
    str | None,
    choice(
        "--access", "WHO", ACCESS,
        "open: everyone with an account; invite: who was invited; private: the same, and nobody "
        "else sees the room.",
    ),
]  # fmt: skip
MemoryOption = Annotated[bool, flag("--memory", "Keep the history in memory only.")]
CapabilityOption = Annotated[
    list[str] | None, option("--capability", "PATTERN", "What members can do. May be repeated.")
]
GrantOption = Annotated[
    list[str] | None,
    option("--grant", "HANDLE=PATTERN", "What one person can do in addition. May be repeated."),
]
UngrantOption = Annotated[
    list[str] | None,
    option("--ungrant", "HANDLE", "Revoke what --grant gave a person. May be repeated."),
]
BackendOption = Annotated[
    list[str] | None,
    option("--backend", "NAMESPACE", "A backend that takes part in the room. May be repeated."),
]
OnlyBackendOption = Annotated[
    list[str] | None,
    option(
        "--backend", "NAMESPACE",
        "A backend that takes part in the room; replaces the present ones. May be repeated.",
    ),
]  # fmt: skip
NoBackendsOption = Annotated[bool, flag("--no-backends", "No backend takes part.")]
QuorumOption = Annotated[
    int | None, number("--quorum", 1, 1000, "How many must reject a proposal to close it.")
]
ProposalSecondsOption = Annotated[
    int | None,
    number("--proposal-seconds", 1, MOST_SECONDS, "How long a proposal waits for a decision."),
]
RequestSecondsOption = Annotated[
    int | None,
    number("--request-seconds", 1, MOST_SECONDS, "How long a request waits for its answer."),
]
ProgressSecondsOption = Annotated[
    int | None,
    number(
        "--progress-seconds", 1, MOST_SECONDS,
        "How long a request waits at most while it reports progress.",
    ),
]  # fmt: skip
LoopGuardOption = Annotated[
    int | None,
    number(
        "--loop-guard", 0, 10000,
        "How often agents can answer each other without a person before they are held; 0: no "
        "limit.",
    ),
]  # fmt: skip
OwnerOption = Annotated[
    list[str] | None,
    option(
        "--owner", "HANDLE",
        "A new owner, a member of the room; replaces the current owners. May be repeated.",
    ),
]  # fmt: skip
KeepMessagesOption = Annotated[
    int | None,
    number("--keep-messages", 0, LAST_SEQ, "How many messages are kept; 0 for the hub's default."),
]
KeepDaysOption = Annotated[
    int | None,
    number(
        "--keep-days", 0, 36500, "For how many days messages are kept; 0 for the hub's default."
    ),
]
ParticipantArgument = Annotated[str, argument("PARTICIPANT", "Who.", checked_handle)]
PatternsArgument = Annotated[
    list[str], argument("PATTERN", "What they can do, such as 'mcp.request.tools/call:read_file'.")
]
FromWhomArgument = Annotated[
    str, argument("PARTICIPANT|GRANT", "The participant, or the id of one grant.")
]
FewerPatternsArgument = Annotated[list[str] | None, argument("PATTERN", "Revoke only these.")]
ProposalArgument = Annotated[
    str, argument("PROPOSAL", "Its number or its id, as 'proposals' shows them.")
]
StateOption = Annotated[
    str | None,
    choice(
        "--state", "STATE", STATES, "Only open, fulfilled, rejected, withdrawn or expired ones."
    ),
]
ToOption = Annotated[
    list[str] | None,
    option(
        "--to", "PARTICIPANT",
        "Who is addressed; everyone sees the message anyway. May be repeated.",
    ),
]  # fmt: skip
WithWhomOption = Annotated[
    str | None,
    option(
        "--to", "PARTICIPANT", "Who should do it, if the proposal does not say.", checked_handle
    ),
]
WhoseOption = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="PARTICIPANT", callback=checked_handle, show_default=False,
        help="Whose tool, if several participants have one of this name.",
    ),
]  # fmt: skip
WhyOption = Annotated[
    str | None, option("--reason", "TEXT", "Why; everyone reads it with the proposal.")
]
WaitOption = Annotated[
    int, number("--wait", 0, 55, "Seconds to wait for the answer (at most 55).  [default: 30]")
]
ToolArgument = Annotated[str, argument("TOOL", "The tool, as 'folkmoot room tools' lists it.")]
ArgumentsArgument = Annotated[
    list[str] | None,
    argument("NAME=VALUE", "The tool's arguments, or one JSON object with all of them."),
]
ProposedArgument = Annotated[
    str,
    argument(
        "TOOL|METHOD[:NAME]", "A tool, or any MCP method, such as 'resources/read:docs://intro'."
    ),
]
MarkdownOption = Annotated[bool, flag("--markdown", "The text is Markdown.")]
RawOption = Annotated[bool, flag("--raw", "On a terminal, show each message with its kind.")]
HistoryLimitOption = Annotated[int, number("--limit", 1, 10000, "How many at most.  [default: 50]")]
AfterOption = Annotated[
    int | None, number("--after", 0, LAST_SEQ, "Only messages after this number.")
]
BeforeOption = Annotated[
    int | None, number("--before", 0, LAST_SEQ, "Only messages before this number.")
]
FromOption = Annotated[
    int | None,
    number(
        "--after", 0, LAST_SEQ,
        "Start after the message with this number, instead of with new ones.",
    ),
]  # fmt: skip
GuestOption = Annotated[
    str | None, option("--guest", "NAME", "Invite someone without an account, under this name.")
]
GuestGrantOption = Annotated[
    list[str] | None,
    option("--grant", "PATTERN", "What the guest can do from the start. May be repeated."),
]
InvitedArgument = Annotated[str | None, argument("HANDLE", "The person to invite.", checked_handle)]
WaitedForArgument = Annotated[str, argument("NAME", "Who was invited: a handle or a guest's name.")]
InvitationOption = Annotated[
    bool,
    flag(
        "--invitation",
        "Enter as a guest. The invitation is asked for, or read from FOLKMOOT_INVITATION or the "
        "first line of the standard input.",
    ),
]


def capability(text: str) -> Any:
    """A pattern, or the JSON of one that constrains the payload too."""
    if not text.startswith("{"):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise typer.BadParameter(f"{text!r} is neither a pattern nor JSON") from None


def grants(given: list[str] | None) -> dict[str, list[Any]]:
    """`HANDLE=PATTERN` options by handle."""
    found: dict[str, list[Any]] = {}
    for text in given or ():
        handle, equals, pattern = text.partition("=")
        if not equals or not handle or not pattern:
            raise typer.BadParameter(f"--grant must be HANDLE=PATTERN, not {text!r}")
        found.setdefault(checked_handle(handle), []).append(capability(pattern))
    return found


def changed_grants(
    given: list[str] | None, taken: list[str] | None
) -> Callable[[Any], dict[str, Any]] | None:
    """Makes of a room's grants those with what is given and without what is taken away."""
    new, gone = grants(given), {*map(checked_handle, taken or ())}
    if both := sorted(gone & new.keys()):
        raise typer.BadParameter(f"--grant and --ungrant both name {both[0]!r}")
    if not (new or gone):
        return None

    def changed(held: Any) -> dict[str, Any]:
        kept = held if isinstance(held, dict) else {}
        return {who: what for who, what in {**kept, **new}.items() if who not in gone}

    return changed


def without_none(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value not in (None, {}, [])}


class Entrance(NamedTuple):
    """The account or guest pass with which a command uses a hub's rooms."""

    hub: str
    name: str
    token: str
    guest: bool = False
    login: Login | None = None

    def __repr__(self) -> str:
        # May end up in a traceback; the token must not.
        return f"Entrance({self.name} on {self.hub})"

    @property
    def client(self) -> HubClient:
        """A hub client with this account or guest pass."""
        if self.login is not None:
            return hub_for_login(self.login)
        return hub_at(self.hub, self.token, guest=self.guest)

    @property
    def source(self) -> str | Callable[[], str]:
        """The token, or what gives the one of the moment."""
        return self.token if self.login is None else token_source(self.login)


def entrance(room: str | None, url: str | None, name: str | None) -> Entrance:
    """The account that was meant or, where there is none, the guest of that room."""
    if (login := login_from_environment(url, name)) is not None:
        return Entrance(login.hub, login.handle, login.token, login=login)
    return entrance_from(read_keyring(), room, url, name)


def entrance_from(
    keyring: Keyring, room: str | None, url: str | None, name: str | None
) -> Entrance:
    """An entrance from the saved accounts and guest passes."""
    try:
        login = keyring.find(url, name)
    except e.NotSignedIn:
        kept = keyring.find_guest(room, url, name) if room is not None else None
        if kept is None:
            raise
        return Entrance(kept.hub, kept.name, kept.credential, guest=True)
    login = fresh(login)
    return Entrance(login.hub, login.handle, login.token, login=login)


POLICY: Final = {
    "quorum": QuorumOption,
    "proposal_seconds": ProposalSecondsOption,
    "request_seconds": RequestSecondsOption,
    "progress_seconds": ProgressSecondsOption,
    "loop_guard": LoopGuardOption,
    "keep_messages": KeepMessagesOption,
    "keep_days": KeepDaysOption,
}
"""The members of a room's policy, and the option that sets each."""


def with_policy(function: Command) -> Command:
    """A command that gets the room `policy` set by its options."""
    return with_options(
        function, POLICY, ("policy",), lambda chosen, _: {"policy": without_none(**chosen)}
    )


def room_command(function: Command) -> Command:
    """A command in a room: as one of the accounts saved here or, with none, as the room's guest."""

    def opens(chosen: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        # A room that is made has no guests yet.
        room = None if function.__name__ == "create" else given.get("name")
        found = cache(lambda: entrance(room, chosen["url"], chosen["handle"]))
        return {"hub": Lazy(found, "client"), "entrance": Lazy(found)}

    options = {"url": UrlOption, "handle": AsOption}
    return with_json_option(with_options(function, options, ("hub", "entrance"), opens))


def present(hub: HubClient, room: str) -> list[ParticipantView]:
    """Everyone who is in a room."""
    return list(every(hub.list_participants, "participants", room))


def proposed(hub: HubClient, room: str, state: Any = None) -> list[ProposalView]:
    """What was proposed in a room and is still remembered."""
    return list(every(hub.list_proposals, "proposals", room, state=state))


def post(
    hub: HubClient, room: str, kind: str, payload: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """Send a message; the answer is the message as everyone got it."""
    envelope = {"protocol": PROTOCOL, "kind": kind, "payload": payload}
    given = {name: value for name, value in more.items() if value}
    return hub.post_message(room, {**envelope, **given})


def listed(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [it for it in value if isinstance(it, dict)] if isinstance(value, list) else []
