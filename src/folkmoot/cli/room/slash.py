"""Lines that begin with a slash, as the live view reads them: a table, and what each one sends."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from folkmoot.cli.asking import checked_handle
from folkmoot.cli.room.rights import Holder
from folkmoot.core.message import JSONRPC
from folkmoot.mcp.wire import PING, PROMPTS_GET, RESOURCES_READ, SUBSCRIBE, TOOLS_CALL, UNSUBSCRIBE

UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
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
    """One command: how it is written, what it does, and what it sends if that is all it does."""

    usage: str
    what: str
    sends: Callable[[str], Sending | None] | None = None
    needs: tuple[str, ...] = ()
    """Kinds or patterns of what it sends; who may send none of it is not offered the command."""


class Asked(Struct, frozen=True):
    """A call as it was typed: a tool or a method, what is given to it, and whom it is for."""

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


def read_asked(name: str, rest: str) -> Asked:
    """A call from the rest of a line; arguments are `name=value` or one JSON object."""
    match = ASKED.fullmatch(rest)
    if match is not None:
        called, given, to = match.groups()
        return Asked(called, (given,) if given else (), checked_handle(to))
    given_words = words(rest)
    meant = [word for word in given_words[1:] if NAME.fullmatch(word)]
    if not given_words or len(meant) > 1:
        raise misused(name)
    others = tuple(word for word in given_words[1:] if word not in meant)
    return Asked(given_words[0], others, checked_handle(meant[0]) if meant else None)


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
                {"grant_id": whom} if UUID.fullmatch(whom) else {"recipient": checked_handle(whom)}
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
    "who": Slash("/who", "Show who is here, and what you may do."),
    "tools": Slash("/tools [@WHO]", "List the tools that you can call."),
    "call": Slash(
        "/call TOOL [NAME=VALUE…] [@WHO]", "Call a tool, or propose it if you may only do that."
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
    "raw": Slash("/raw", "Show messages with their kinds, or in words again."),
    "quit": Slash("/quit", "Leave; Ctrl-C and Ctrl-D do the same."),
}  # fmt: skip
"""Every command of the input line."""

DECIDING: Final = frozenset(("approve", "reject"))
ABOUT_TAB: Final = "Tab shows the proposals that you can decide on."


def offered(holder: Holder) -> dict[str, Slash]:
    """The commands that someone may use."""

    def may(need: str) -> bool:
        return holder.may_some(need) if "*" in need else holder.may(need)

    return {name: it for name, it in SLASHES.items() if not it.needs or any(map(may, it.needs))}
