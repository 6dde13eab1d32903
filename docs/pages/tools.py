"""The page of all tools, from the table they are called by."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from docs.pages.answers import ANSWERS
from docs.pages.markdown import document, table
from folkmoot.operations import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from folkmoot.operations import Operation
    from folkmoot.operations.schema import Schema

INTRODUCTION = """\
What an assistant, an app or a program can call at `/mcp`. [The endpoint](mcp.md) tells how to
connect, how names are spelled and what errors look like; here are the tools, in the order in which
they are listed. A name may be written in either spelling, always.

An argument that is `null` counts as left out. One that nobody knows is an error that names it.
The answer of every tool is one JSON object, as text; each is shown by an example. Times of mail are
whole seconds since 1970, those of rooms are written as RFC 3339 has it. `next_cursor` is `null`
when nothing follows. A message that its sender's client encrypted has `"encryption_mode": "e2e"`,
`null` as its `body`, and an `encrypted_payload` as `msg/send` takes it. Of a user whose privacy is
`contacts_only` a search shows the two names alone, unless you are a contact of theirs. The other
side of a thread is `[deleted]` once that account is. `msg/digest` lists up to 50 senders, and has
`more_senders` where there are more; where you are mentioned or invited in rooms, it names them in
`rooms`.

The tools of rooms are for assistants that have no WebSocket; what they say and do in a room is the
same as on one, and so are their rights. A message is shown in few words: chat as `text` with what
belongs to it, all else as its `payload`."""

KINDS = {
    "reads": "reads",
    "adds": "adds",
    "changes": "changes",
    "destroys": "removes",
    "acts": "has others act",
}
"""What a tool does, in a word."""

WAITS = {
    "ask/result": "With `wait` it comes back when the ask has ended, or as it is when the time is "
    "over.",
    "msg/inbox": "With `wait` only unread messages come back; muted threads wake nobody.",
    "room/tools": "It comes back when everyone has answered, or when the time is over. At most 32 "
    "participants are asked: `not_asked` counts the others, and `left_out` the tools for which the "
    "answer has no room.",
    "room/call": "`state` is `answered` with a `result`, `failed` with an `error`, `waiting` when "
    "the time is over (the request stays open), or `proposed` with the id of the `proposal`.",
    "room/read": "With `wait` it comes back when there is a message of the kinds asked for after "
    "`after`, or empty when the time is over. `first_seq` is where the room's history begins, "
    "`last_seq` is how far this answer reaches, and `more` says that there is something after it "
    "already. One call looks at no more than 1,000 messages, and returns no more than 256 KiB of "
    "them, but always one.",
}
"""What comes of waiting, by tool."""


def page() -> str:
    """The whole page."""
    index = table(["Tool", "Listed as", "Needs a token", "It …"], map(row, CATALOGUE.tools))
    return document("# Tools", INTRODUCTION, index, *sections())


def row(tool: Operation) -> list[str]:
    """One tool in the index."""
    return [
        f"[`{tool.name}`](#{anchor(tool)})",
        f"`{CATALOGUE.names.spell(tool.name, 'safe')}`",
        "no" if tool.public else "yes",
        f"{KINDS[tool.effect]}{', for the app alone' if tool.app_only else ''}",
    ]


def anchor(tool: Operation) -> str:
    """Where the tool's section is, as renderers of Markdown name it."""
    return tool.name.replace("/", "")


def sections() -> Iterator[str]:
    """Each tool with its arguments."""
    for tool in CATALOGUE.tools:
        yield f"## `{tool.name}`"
        yield tool.description
        arguments = list(rows(tool.schema, ""))
        if arguments:
            yield table(["Argument", "Type", "Meaning"], arguments)
        else:
            yield "It takes no arguments."
        notes = list(remarks(tool))
        if notes:
            yield "\n".join(f"- {note}" for note in notes)
        yield "It answers:"
        yield f"```json\n{json.dumps(ANSWERS[tool.name], indent=2, ensure_ascii=False)}\n```"


def rows(schema: Schema, path: str) -> Iterator[list[str]]:
    """The arguments of an object, those of objects in it below them."""
    for name, inner in schema["properties"].items():
        must = ", required" if name in schema["required"] else ""
        meaning = inner.get("description", "")
        yield [f"`{path}{name}`", f"{kind(inner)}{must}", meaning]
        if "properties" in inner:
            yield from rows(inner, f"{path}{name}.")


def kind(schema: dict[str, Any]) -> str:
    """The type of an argument in words."""
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema["type"] == "array":
        return f"list, each {kind(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object, each member a {kind(schema['additionalProperties'])}"
    if "minimum" in schema:
        return f"{schema['type']}, {schema['minimum']} to {schema['maximum']}"
    return str(schema["type"])


def remarks(tool: Operation) -> Iterator[str]:
    """What else is true of a tool."""
    if "oneOf" in tool.schema:
        names = [f"`{choice['required'][0]}`" for choice in tool.schema["oneOf"]]
        yield f"Exactly one of {' and '.join(names)} must be given."
    if tool.limits:
        names = " and ".join(f"`rates.{limit.name}_per_…`" for limit in tool.limits)
        yield f"How often is limited by {names} ([settings](settings.md))."
    if tool.asks:
        yield (
            f"Where `{tool.asks}` is missing and the client can ask its user, the call is answered "
            "with the question (stateless era)."
        )
    if tool.waits:
        yield WAITS[tool.name]
    if tool.app:
        yield f"A client with the Apps extension shows its result in `{tool.app}`."
    if tool.app_only:
        yield "For the app alone: listed to clients with the Apps extension, or with `?tools=all`."
    if tool.finder:
        yield "Listed with `?tools=search`, in place of all others; it can be called always."
