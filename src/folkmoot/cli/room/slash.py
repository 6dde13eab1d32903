"""Lines that begin with a slash, as the live view reads them: a table, and what each one sends."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from folkmoot.cli.asking import checked_handle

UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PROPOSED: Final = re.compile(r"(\S+?)(?::(\S+))?(?:\s+(\{.*\}))?(?:\s+@([\w-]+))?", re.DOTALL)
NAMED: Final = frozenset(("tools/call", "prompts/get"))
"""Methods whose context is a name, with arguments beside it."""
LOCATED: Final = frozenset(("resources/read", "resources/subscribe", "resources/unsubscribe"))
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
        raise Misused(f"There is no /{name}; /help lists what there is.")
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
    return Misused(f"It is written {SLASHES[name].usage}")


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


def _propose(rest: str) -> Sending | None:
    match = PROPOSED.fullmatch(rest)
    if match is None:
        return None
    method, context, given, to = match.groups()
    try:
        arguments = json.loads(given) if given else {}
    except ValueError:
        raise Misused("What is in the braces is not JSON.") from None
    params = arguments
    if method in NAMED and context:
        params = {"name": context, "arguments": arguments}
    elif method in LOCATED and context:
        params = {"uri": context, **arguments}
    kind = f"mcp.proposal.{method}" + (f":{context}" if context else "")
    payload = {"jsonrpc": "2.0", "method": method, "params": params}
    return Sending(kind, payload, (checked_handle(to),) if to else ())


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


SLASHES: Final[dict[str, Slash]] = {
    "help": Slash("/help", "Show this list."),
    "who": Slash("/who", "Show who is here, and what you may do."),
    "propose": Slash(
        "/propose METHOD[:NAME] [{JSON}] [@WHO]", "Ask that something be done.", _propose
    ),
    "approve": Slash("/approve NUMBER [@WHO]", "Have what was proposed done."),
    "reject": Slash("/reject NUMBER REASON", "Say no to a proposal."),
    "withdraw": Slash("/withdraw NUMBER", "Take back what you proposed."),
    "grant": Slash("/grant WHO PATTERN…", "Let someone do more.", _grant),
    "revoke": Slash("/revoke WHO|GRANT [PATTERN…]", "Take back what was granted.", _revoke),
    "invite": Slash("/invite HANDLE", "Ask someone in.", _about("room.invite", "handle")),
    "kick": Slash("/kick WHO", "Put someone out.", _about("room.kick", "participant")),
    "quit": Slash("/quit", "Leave; Ctrl-C and Ctrl-D do the same."),
}
"""Every command of the input line."""

ABOUT_TAB: Final = "Tab looks at what was proposed; then a approves, r rejects, n goes on."
