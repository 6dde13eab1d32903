"""`folkmoot proxy held`: messages that a rule holds, and what is to become of them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer

from folkmoot.cli.commands import Output, with_json_option
from folkmoot.cli.operator import SocketHub, check_entry, on_socket
from folkmoot.cli.options import argument, flag, option, settings_from
from folkmoot.cli.output import (
    complain,
    duration,
    pretty,
    say,
)
from folkmoot.cli.show import Entry, show_entries, word
from folkmoot.core import errors as e
from folkmoot.datafolder import Paths

if TYPE_CHECKING:
    from folkmoot.operations.operator.held import Released
    from folkmoot.proxy.held import HeldView


ID = re.compile(r"(?:([0-9]{1,10})/)?([0-9]{1,15})")
INDENT = "  "
BECAME = {
    "released": "released",
    "dropped": "dropped",
    "gone": "nobody waits for it any more",
}
ARROWS = {"client_to_server": "→ server", "server_to_client": "→ client"}

HubDataOption = Annotated[
    str | None,
    option("--data", "DIR", "Ask the hub of this data folder, instead of the running proxies."),
]
IdArgument = Annotated[
    str, argument("ID", "Which message, as 'list' shows it: 4711/3, or 3 if only one runs.")
]
ReasonOption = Annotated[
    str, option("--reason", "TEXT", "The reason, shown to the sender of the message.")
]

EditOption = Annotated[bool, flag("--edit", "Edit the message first, in $VISUAL or $EDITOR.")]
WithOption = Annotated[
    str | None,
    option(
        "--with", "FILE", "Release the message in this JSON file instead; - reads standard input."
    ),
]

held = typer.Typer(help="Messages that wait for a decision.", rich_markup_mode=None)


class HoldingProcess(NamedTuple):
    """Who holds messages: a proxy, or a hub."""

    pid: int | None
    socket: Path

    @property
    def hub(self) -> SocketHub:
        """What to ask for it."""
        return on_socket(self.socket, "" if self.pid is None else "The proxy has ended.")

    def name(self, number: int) -> str:
        """The name of a held message, unique over all processes that hold some."""
        return str(number) if self.pid is None else f"{self.pid}/{number}"


@held.command("list")
@with_json_option
def held_list(data: HubDataOption = None) -> Output:
    """List held messages, the oldest first."""
    found = sorted(
        ((place, each) for place in places(data) for each in listed(place)),
        key=lambda pair: pair[1].since,
    )
    shown = [entry(place, each) for place, each in found]
    told = {"held": [row_data(place, each) for place, each in found]}
    return Output(told, lambda: show_entries(shown, "No message is held."))


@held.command("show")
@with_json_option
def held_show(which: IdArgument, data: HubDataOption = None) -> Output:
    """Show a held message in full, as JSON."""
    message = message_of(*found(which, data))
    return Output(message, pretty(message))


@held.command("release")
@with_json_option
def held_release(
    which: IdArgument,
    replacement: WithOption = None,
    data: HubDataOption = None,
    *,
    edit: EditOption = False,
) -> Output:
    """Release a held message, as it is or edited.

    An edited message must keep its id and its method. If it is not valid it is refused, and the
    message stays held. The rules that checked it before check it again.
    """
    if edit and replacement is not None:
        raise typer.BadParameter("give either --edit or --with")
    place, number = found(which, data)
    if edit:
        answer = release_edited(place, number)
    else:
        message = None if replacement is None else read_message(replacement)
        answer = place.hub.release_held(number, message=message)
    changed = " with your changes" if edit or replacement is not None else ""
    return Output(answer, f"Released {place.name(number)}{changed}.")


@held.command("drop")
@with_json_option
def held_drop(which: IdArgument, reason: ReasonOption = "", data: HubDataOption = None) -> Output:
    """Drop a held message."""
    place, number = found(which, data)
    answer = place.hub.drop_held(number, reason=reason)
    return Output(answer, f"Dropped {place.name(number)}.")


def message_of(place: HoldingProcess, number: int) -> dict[str, Any]:
    return place.hub.get_held(number).message


def release_edited(place: HoldingProcess, number: int) -> Released:
    """Have a message edited until it can go on; one that is not saved stays held."""
    text = pretty(message_of(place, number))
    while True:
        edited = in_editor(text)
        if edited == text:
            raise e.CommandFailed(f"Nothing was changed, so {place.name(number)} is still held.")
        text = edited
        try:
            return place.hub.release_held(number, message=as_message(text))
        except (e.CommandInvalid, typer.BadParameter) as error:
            complain(getattr(error, "message", str(error)))
            if not typer.confirm("Edit it again?", default=True, err=True):
                raise e.CommandFailed(f"{place.name(number)} is still held.") from None


def in_editor(text: str) -> str:
    """Open a text in the user's editor, and return what they saved."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "message.json"
        path.write_text(text + "\n")
        try:
            subprocess.run([*shlex.split(chosen), str(path)], check=True)  # noqa: S603 - theirs
        except (OSError, ValueError, subprocess.CalledProcessError):
            raise e.CommandFailed(f"The editor could not be used: {chosen}. Set $EDITOR.") from None
        return path.read_text().removesuffix("\n")


def read_message(source: str) -> dict[str, Any]:
    """A message in a file, or on standard input."""
    try:
        text = sys.stdin.read() if source == "-" else Path(source).expanduser().read_text()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "is not text"
        raise typer.BadParameter(f"--with: {source}: {why}") from None
    return as_message(text)


def as_message(text: str) -> dict[str, Any]:
    """Parse an edited text as a JSON object."""
    from folkmoot.core import strict

    try:
        return strict.decode_object(text.encode())
    except (e.MessageError, UnicodeError) as error:
        why = getattr(error, "message", "it is not text")
        raise typer.BadParameter(f"the edited message is not valid JSON: {why}") from None


def show_held(change: str, message: Any) -> None:
    """Print on standard error that this proxy holds a message, or what became of it."""
    from folkmoot.proxy.held import what_of

    name = f"{os.getpid()}/{message.id}"
    what = word(what_of(message.type, message.method, message.tool))
    if change != "held":
        say(f"{name} {what}: {BECAME[change]}.", err=True)
        return
    why = f": {word(message.reason)}" if message.reason else "."
    arrow = ARROWS.get(message.direction, message.direction)
    say(f"Held {name}, {what} {arrow}, by {word(message.rule)}{why}", err=True)
    say(f"{INDENT}Decide with: folkmoot proxy held release|drop {name}", err=True)


def places(data: str | None) -> list[HoldingProcess]:
    """The hub that was named, or every proxy that runs."""
    from folkmoot.datafolder.proxies import running_proxies

    if data is not None:
        paths = Paths(settings_from(None, data=data).settings.data_folder)
        check_entry(paths)
        return [HoldingProcess(None, paths.control_socket)]
    return [HoldingProcess(pid, path) for pid, path in running_proxies().items()]


def found(which: str, data: str | None) -> tuple[HoldingProcess, int]:
    """The process that holds a message, and the message's number there."""
    given = ID.fullmatch(which)
    if given is None:
        raise typer.BadParameter(f"ID must be a number, or PROCESS/NUMBER, not {which!r}")
    there = places(data)
    if given[1] is not None:
        there = [place for place in there if place.pid == int(given[1])]
    if not there:
        named = f" as process {given[1]}" if given[1] is not None else ""
        raise e.HubNotRunning(f"No proxy is running{named}.")
    if len(there) > 1:
        raise e.CommandInvalid(
            f"{len(there)} proxies are running. Say which, as 'held list' shows it."
        )
    return there[0], int(given[2])


def listed(place: HoldingProcess) -> list[HeldView]:
    """What is held at one place; nothing, where a proxy has ended meanwhile."""
    try:
        return place.hub.list_held().held
    except (e.HubNotRunning, e.CommandFailed):
        if place.pid is None:
            raise
        return []


def entry(place: HoldingProcess, message: HeldView) -> Entry:
    """One held message: its kind, the rule that held it, and its content."""
    from folkmoot.clock import SystemClock
    from folkmoot.proxy.held import what_of

    name = place.name(message.id)
    lasted = duration(max(0.0, SystemClock().now() - message.since))
    way = ARROWS.get(message.direction, message.direction)
    what = word(what_of(message.type, message.method, message.tool))
    rule, why, says = word(message.rule), word(message.reason), word(message.preview)
    return Entry(
        ((name, "bold"), (f"  {what}", "")),
        ((f"{way}, for {lasted}, by {rule}: {why}", ""), (says, "dim")),
        (name, lasted, way, what, rule, why, says),
    )


def row_data(place: HoldingProcess, message: HeldView) -> dict[str, Any]:
    """One held message as JSON data."""
    return {**msgspec.to_builtins(message), "id": place.name(message.id), "pid": place.pid}
