"""Tools in a room from the command line: list them, call one, propose something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from folkmoot.cli.call_show import show_progress
from folkmoot.cli.commands import Note, Output, Table
from folkmoot.cli.limits import CALL_SECONDS, LIST_TOOLS_SECONDS
from folkmoot.cli.options import JsonOption, typed_arguments, usage
from folkmoot.cli.output import lines, one_line, say, say_data
from folkmoot.cli.room import options as opts
from folkmoot.cli.room import slash
from folkmoot.cli.room.options import (
    Entrance,
    listed,
    post,
    room_command,
)
from folkmoot.cli.room.sentences import content_of, spelled
from folkmoot.cli.show import Column, word
from folkmoot.core import errors as e
from folkmoot.mcp.wire import TOOLS_CALL

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient

COLUMNS: Final = (
    Column("Whose", "bold"), Column("Tool", wide=True), Column("What it does", "dim", wide=True),
)  # fmt: skip


@room_command
def tools(
    entrance: Entrance,
    name: opts.RoomArgument,
    to: opts.WhoseOption = None,
) -> Output:
    """List the tools that the participants of a room offer.

    Arguments in brackets can be left out. Needs the right mcp.request.tools/list, which members
    have by default.
    """
    found = list_tools(account(entrance, name), name, to)
    offered, silent = listed(found.get("tools")), found.get("unanswered")
    nobody = "Nobody in the room offers tools." if to is None else without_tools(to)
    shown: list[Table | Note] = []
    if offered or not silent:
        shown.append(Table(COLUMNS, map(row, offered), nobody))
    if isinstance(silent, list) and silent:
        shown.append(Note(f"No answer from {', '.join(map(word, silent))}."))
    for member, why in (("left_out", "the list is too long"), ("not_asked", "there are too many")):
        if isinstance(count := found.get(member), int) and count:
            shown.append(Note(f"{count} more are not shown: {why}. --to NAME shows those of one."))
    return Output(found, *shown)


def without_tools(name: str) -> str:
    """A sentence about a participant."""
    return f"{word(name)} offers no tools."


def row(tool: dict[str, Any]) -> tuple[str, ...]:
    about = tool.get("description")
    first = about.strip().partition("\n")[0] if isinstance(about, str) else ""
    return word(tool.get("to")), usage(tool), one_line(first)


@room_command
def call(
    entrance: Entrance,
    name: opts.RoomArgument,
    tool: opts.ToolArgument,
    arguments: opts.ArgumentsArgument = None,
    to: opts.WhoseOption = None,
    reason: opts.WhyOption = None,
    wait: opts.WaitOption = CALL_SECONDS,
    *,
    as_json: JsonOption = False,
) -> None:
    """Call a tool of a participant, and print its answer.

    If you can only propose the call, it is proposed, and someone with the right can approve it.
    Progress is shown on standard error. Ctrl-C cancels the call.
    """
    who = account(entrance, name)
    to, schema = whose(who, name, tool, to)
    wanted = {
        "room": name, "tool": tool, "arguments": typed_arguments(arguments or (), schema), "to": to,
        "reason": reason, "wait": wait,
    }  # fmt: skip
    asked = who if as_json else who.telling(show_progress)
    answer = asked.call("room/call", wanted, wait=wait)
    if as_json:
        say_data(answer)
        return
    show_answer(answer, tool)


def show_answer(answer: dict[str, Any], tool: str) -> None:
    by = word(answer.get("to"))
    match answer.get("state"):
        case "proposed":
            number = word(answer.get("seq"))
            say(f"You can't call {tool} yourself, so it was proposed as #{number}.", err=True)
        case "waiting":
            raise e.ToolRefused(
                f"{by} has not answered yet; 'folkmoot room history' shows the answer when it "
                "comes."
            )
        case "failed":
            error = answer.get("error")
            told = error.get("message") if isinstance(error, dict) else None
            raise e.ToolRefused(f"{by}: {one_line(str(told or 'the call failed'))}")
        case _:
            result = answer.get("result")
            result = result if isinstance(result, dict) else {}
            text = content_of(result) or spelled(result)
            if result.get("isError"):
                raise e.ToolRefused(f"{by}: {one_line(text)}")
            for line in lines(text):
                say(line)


@room_command
def propose(
    entrance: Entrance,
    name: opts.RoomArgument,
    what: opts.ProposedArgument,
    arguments: opts.ArgumentsArgument = None,
    to: opts.WhoseOption = None,
    reason: opts.WhyOption = None,
) -> Output:
    """Propose a tool call or another request.

    Someone with the right to make the request can approve it.
    """
    method, context = slash.method_of(what)
    schema = None
    if method == TOOLS_CALL and arguments and not entrance.guest:
        try:
            to_ask, schema = whose(entrance.client, name, context or "", to)
        except e.ToolRefused:
            # Whoever approves it may know better who offers it.
            to_ask = None
        to = to or to_ask
    made = slash.proposal(method, context, typed_arguments(arguments or (), schema))
    payload = {**made.payload, "reason": reason} if reason else made.payload
    answer = post(entrance.client, name, made.kind, payload, to=[to] if to else None)
    return Output(answer, f"Proposed as #{word(answer.get('seq'))}.")


def account(who: Entrance, room: str) -> HubClient:
    """The hub, as an account; a guest uses tools where they are."""
    if who.guest:
        raise e.ToolRefused(
            f"As a guest, use /tools and /call in the room: 'folkmoot room join {room}'."
        )
    return who.client


def list_tools(hub: HubClient, room: str, to: str | None) -> dict[str, Any]:
    """The tools of a room as the hub lists them."""
    arguments = {"room": room, "to": to, "wait": LIST_TOOLS_SECONDS}
    return hub.call("room/tools", arguments, wait=LIST_TOOLS_SECONDS)


def whose(hub: HubClient, room: str, tool: str, to: str | None) -> tuple[str | None, Any]:
    """Who offers a tool, and the schema of its arguments where that is known."""
    try:
        answer = list_tools(hub, room, to)
    except e.ToolRefused:
        if to is None:
            raise
        return to, None
    found = listed(answer.get("tools"))
    if to is not None and not found and not answer.get("unanswered"):
        say(f"{without_tools(to)} It can still answer by hand.", err=True)
    offers = [it for it in found if it.get("name") == tool]
    if to is not None or len(offers) == 1:
        return to or str(offers[0].get("to")), offers[0].get("inputSchema") if offers else None
    if not offers:
        raise e.ToolRefused(f"Nobody in the room offers {one_line(tool)}.")
    named = " and ".join(word(it.get("to")) for it in offers)
    raise e.ToolRefused(f"{named} offer {one_line(tool)}; say whose with --to.")
