"""Commands of the live view's input line, and the tools they can call."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from folkmoot.cli.credentials import checked_handle
from folkmoot.cli.limits import MAX_ASKED
from folkmoot.cli.room.proposals import Holder
from folkmoot.core import errors as e
from folkmoot.core.message import JSONRPC
from folkmoot.core.uuids import is_uuid
from folkmoot.mcp.wire import (
    PING,
    PROMPTS_GET,
    RESOURCES_READ,
    SUBSCRIBE,
    TOOLS_CALL,
    UNSUBSCRIBE,
)

if TYPE_CHECKING:
    from folkmoot.client import OfferedTool, Room


ASKED: Final = re.compile(r"(\S+)(?:\s+(\{.*\}))?(?:\s+@([\w-]+))?", re.DOTALL)
"""A call with its arguments as one JSON object."""
NAMED: Final = frozenset((TOOLS_CALL, PROMPTS_GET))
"""Methods whose context is a name, with arguments beside it."""
METHODS: Final = frozenset((PING,))
"""Methods that have no slash in their name."""
NAME: Final = re.compile(r"@[\w-]+")
LOCATED: Final = frozenset((RESOURCES_READ, SUBSCRIBE, UNSUBSCRIBE))
"""Methods whose context is a URI."""


class Misused(ValueError):
    """A line that comes to nothing, with a sentence that says why."""


class Sending(Struct, frozen=True):
    """A message that a line comes to."""

    kind: str
    payload: dict[str, Any]
    to: tuple[str, ...] = ()


class Slash(Struct, frozen=True):
    """One slash command: its usage, its help, and the message it sends, if that is all it does."""

    usage: str
    what: str
    sends: Callable[[str], Sending | None] | None = None
    needs: tuple[str, ...] = ()
    """Kinds or patterns of what it sends; who may send none of it is not offered the command."""


class TypedCall(Struct, frozen=True):
    """A tool call as typed: tool or method, arguments and participant."""

    name: str
    words: tuple[str, ...] = ()
    to: str | None = None


Read: TypeAlias = tuple[str, str]


def read(line: str) -> Read:
    """The name of a command and the rest of its line; an empty name for what is to be said.

    Two slashes in front say something that begins with one.
    """
    if not line.startswith("/"):
        return "", line
    if line.startswith("//"):
        return "", line[1:]
    name, _, rest = line[1:].partition(" ")
    if name not in SLASHES:
        raise Misused(f"There is no command /{name}. /help lists the commands.")
    return name, rest.strip()


def sending(name: str, rest: str) -> Sending:
    """The message a command sends."""
    command = SLASHES[name]
    made = command.sends(rest) if command.sends else None
    if made is None:
        raise misused(name)
    return made


def misused(name: str) -> Misused:
    """How a command is written."""
    return Misused(f"Usage: {SLASHES[name].usage}")


def proposal_number(name: str, which: str) -> str:
    """The number of a proposal as it was typed."""
    number = which.removeprefix("#")
    if not number:
        raise misused(name)
    return number


def words(rest: str) -> list[str]:
    """The words of a line, some perhaps in quotes."""
    try:
        return shlex.split(rest)
    except ValueError:
        return []


def read_asked(name: str, rest: str) -> TypedCall:
    """A call from the rest of a line; arguments are `name=value` or one JSON object."""
    match = ASKED.fullmatch(rest)
    if match is not None:
        called, given, to = match.groups()
        return TypedCall(called, (given,) if given else (), checked_handle(to))
    given_words = words(rest)
    meant = [word for word in given_words[1:] if NAME.fullmatch(word)]
    if not given_words or len(meant) > 1:
        raise misused(name)
    others = tuple(word for word in given_words[1:] if word not in meant)
    return TypedCall(given_words[0], others, checked_handle(meant[0]) if meant else None)


def proposal(method: str, context: str | None, arguments: dict[str, Any]) -> Sending:
    """A proposal of a request."""
    return as_message("mcp.proposal", method, context, arguments)


def as_message(
    operation: str, method: str, context: str | None, arguments: dict[str, Any]
) -> Sending:
    """A request or a proposal, with its params as the method has them."""
    params = arguments
    if method in NAMED and context:
        params = {"name": context, "arguments": arguments}
    elif method in LOCATED and context:
        params = {"uri": context, **arguments}
    kind = f"{operation}.{method}" + (f":{context}" if context else "")
    return Sending(kind, {"jsonrpc": JSONRPC, "method": method, "params": params})


def method_of(called: str) -> tuple[str, str | None]:
    """The method and the context of what was typed: a tool's name alone means calling it."""
    method, _, context = called.partition(":")
    if method in METHODS or "/" in method:
        return method, context or None
    return TOOLS_CALL, called


def _grant(rest: str) -> Sending | None:
    match words(rest):
        case [who, _, *_] as given:
            payload = {"recipient": checked_handle(who), "capabilities": given[1:]}
            return Sending("capability.grant", payload)
    return None


def _revoke(rest: str) -> Sending | None:
    match words(rest):
        case [whom, *patterns]:
            payload: dict[str, Any] = (
                {"grant_id": whom} if is_uuid(whom) else {"recipient": checked_handle(whom)}
            )
            return Sending(
                "capability.revoke",
                {**payload, "capabilities": patterns} if patterns else payload,
            )
    return None


def _about(kind: str, member: str) -> Callable[[str], Sending | None]:
    def made(rest: str) -> Sending | None:
        match words(rest):
            case [who]:
                return Sending(kind, {member: checked_handle(who)})
        return None

    return made


def _pause(rest: str) -> Sending | None:
    who, _, reason = rest.partition(" ")
    if not who:
        return None
    payload = {"reason": reason.strip()} if reason.strip() else {}
    return Sending("participant.pause", payload, (checked_handle(who),))


def _resume(rest: str) -> Sending | None:
    whom = rest.split()
    if len(whom) > 1:
        return None
    return Sending("participant.resume", {}, tuple(map(checked_handle, whom)))


SLASHES: Final[dict[str, Slash]] = {
    "help": Slash("/help", "Show this list."),
    "who": Slash("/who", "Show who is here, and what you can do."),
    "tools": Slash("/tools [@WHO]", "List the tools that you can call."),
    "call": Slash(
        "/call TOOL [NAME=VALUE…] [@WHO]", "Call a tool, or propose it if you can only do that."
    ),
    "propose": Slash(
        "/propose TOOL [NAME=VALUE…] [@WHO]",
        "Propose a call; METHOD[:NAME] {JSON} proposes any request.",
        needs=("mcp.proposal.*",),
    ),
    "approve": Slash(
        "/approve NUMBER [@WHO]", "Approve a proposal: what it asks for is done.",
        needs=("mcp.request.tools/call:*", "mcp.request.resources/*", "mcp.request.prompts/*"),
    ),
    "reject": Slash(
        "/reject NUMBER REASON", "Reject a proposal.", needs=("mcpx.reject.proposal",)
    ),
    "withdraw": Slash(
        "/withdraw NUMBER", "Withdraw a proposal of yours.", needs=("mcpx.withdraw.proposal",)
    ),
    "grant": Slash(
        "/grant WHO PATTERN…", "Let someone do more.", _grant, needs=("capability.grant",)
    ),
    "revoke": Slash(
        "/revoke WHO|GRANT [PATTERN…]", "Take back what you granted.", _revoke,
        needs=("capability.revoke",),
    ),
    "invite": Slash(
        "/invite HANDLE", "Invite someone.", _about("room.invite", "handle"), needs=("room.invite",)
    ),
    "kick": Slash(
        "/kick WHO", "Remove someone from the room.", _about("room.kick", "participant"),
        needs=("room.kick",),
    ),
    "pause": Slash(
        "/pause WHO [REASON]", "Keep someone from starting anything.", _pause,
        needs=("participant.pause",),
    ),
    "resume": Slash(
        "/resume [WHO]", "Let someone who is paused, or everyone, continue.", _resume,
        needs=("participant.resume",),
    ),
    "edit": Slash("/edit [#NUMBER] TEXT", "Change what you said last, or in that message."),
    "delete": Slash("/delete [#NUMBER]", "Delete what you said last, or that message."),
    "raw": Slash("/raw", "Show messages with their kinds, or in words again."),
    "quit": Slash("/quit", "Leave; Ctrl-C and Ctrl-D do the same."),
}  # fmt: skip

DECIDING: Final = frozenset(("approve", "reject"))
ABOUT_TAB: Final = "Tab shows the proposals that you can decide on."


def offered(holder: Holder) -> dict[str, Slash]:
    """The slash commands that a participant's rights allow."""

    def may(need: str) -> bool:
        return holder.may_some(need) if "*" in need else holder.may(need)

    return {name: it for name, it in SLASHES.items() if not it.needs or any(map(may, it.needs))}


OFFERING: Final = frozenset(("agent", "backend"))
"""Types of participants that are asked for their tools unless someone is named."""
CHANGED: Final = "mcp.notification.notifications/tools/list_changed"


class ToolListing(Struct):
    """Tools, those who did not answer, and why someone could not be asked."""

    offers: list[OfferedTool]
    silent: list[str]
    refusal: e.FolkmootError | None = None


class Toolbox(Struct, eq=False):
    """Asks for tools, and remembers the answers while they hold."""

    room: Room
    _known: dict[str, list[OfferedTool]] = {}

    def see(self, envelope: Mapping[str, Any]) -> None:
        """Forget the cached tools of a participant who left, returned or announced a change."""
        kind = str(envelope.get("kind", ""))
        if kind == CHANGED:
            self._known.pop(str(envelope.get("from")), None)
        elif kind.startswith("system.presence."):
            payload = envelope.get("payload")
            who = payload.get("participant") if isinstance(payload, dict) else None
            if isinstance(who, dict):
                self._known.pop(str(who.get("id")), None)

    async def tools(self, who: str | None = None) -> ToolListing:
        """The tools of one participant, or of every agent and backend that serves."""
        names = await self._offering(who)
        listing = ToolListing([], [])
        for name, answer in zip(names, await self._ask_all(names), strict=True):
            if isinstance(answer, e.PolicyError | e.RecipientUnknown):
                listing.refusal = answer
            elif isinstance(answer, e.FolkmootError):
                listing.silent.append(name)
            else:
                listing.offers += answer
        return listing

    async def find(self, tool: str, who: str | None) -> tuple[str, Any]:
        """Who offers a tool, and the schema of its arguments if that is known."""
        listing = await self.tools(who)
        found = [it for it in listing.offers if it.definition.get("name") == tool]
        if len(found) == 1:
            return found[0].by, found[0].definition.get("inputSchema")
        if who is not None:
            # It may be there all the same: whoever has it says so.
            return who, None
        raise e.ToolRefused(which(tool, [it.by for it in found], listing))

    async def _offering(self, who: str | None) -> list[str]:
        """Whom to ask: others would not answer, save one who answers by hand and is named."""
        if who is not None:
            without = False
            with suppress(e.FolkmootError):
                here = await self.room.list_participants()
                without = any(it.id == who and it.offers_tools is False for it in here)
            return [] if without else [who]
        here = await self.room.list_participants()
        serving = (it for it in here if it.offers_tools and it.type in OFFERING)
        return sorted(it.id for it in serving if it.id != self.room.me.id)[:MAX_ASKED]

    async def _ask_all(self, names: Iterable[str]) -> list[list[OfferedTool] | e.FolkmootError]:
        import asyncio

        return list(await asyncio.gather(*map(self._ask, names)))

    async def _ask(self, name: str) -> list[OfferedTool] | e.FolkmootError:
        if name not in self._known:
            try:
                self._known[name] = await self.room.list_tools(name)
            except (e.PolicyError, e.RecipientUnknown, e.RequestFailed) as error:
                return error
        return self._known[name]


def which(tool: str, by: list[str], listing: ToolListing) -> str:
    """Why it is not known whose tool is meant."""
    if by:
        return f"{' and '.join(by)} offer {tool}; say whose with @NAME."
    if listing.refusal is not None:
        return "You can't list tools here; say whose tool it is with @NAME."
    silent = f" ({', '.join(listing.silent)} did not answer)" if listing.silent else ""
    return f"Nobody here offers {tool}{silent}."
