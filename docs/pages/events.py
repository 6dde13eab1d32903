"""The page of events, from the table that the streams tell them by."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from docs.pages.markdown import document, table
from folkmoot.operations.events import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from folkmoot.operations.events import EventRow

INTRODUCTION = """\
`GET /v1/events` is a stream of
[Server-Sent Events](https://html.spec.whatwg.org/multipage/server-sent-events.html) that tells what
changed, so that a program need not ask again and again:

```sh
curl -N -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8420/v1/events
```

```text
event: mail.received
id: 5f0c7d9be2a14c31-l9be2a14c310c-7
data: {"message_id":"0199…","thread_id":"0199…","urgent":false,"muted":false}
```

An event says that something changed and where; never what somebody wrote. To read it, ask for it
with [REST](rest.md).

- **Who hears what.** An event is told to those who may do the operation in its row, at that moment,
  with the [scope](operations.md) of the token they came with. A guest hears of its room. Operators'
  events are for the hub's own socket and for tokens with the scope `operate`.
- **Going on.** After a break, send the id of the last event as `Last-Event-ID`; `EventSource` does
  so itself. What was missed comes first. A stream is kept for `events.resume_seconds`, for the
  token that opened it.
- **`reload`.** Where events may be missing, the stream says `reload`: read again what you show.
  That happens when a stream is not kept any more, the hub was restarted, more waits for you than
  200 events or 64 KiB, or your rights changed. Without `Last-Event-ID` a stream begins with what
  happens next.
- **The end.** A stream ends when its token is revoked or expires, when its account is suspended,
  deleted or recovered, and when the hub stops. A client whose token is good connects again.
- **Silence.** After 15 seconds without an event comes a comment, `:`.
- **Limits.** `events.max_streams` for the hub (then 503), `events.max_streams_per_account` (then
  429), and `events.max_bytes` for what is kept. A stream follows up to 1,000 rooms.

Unknown events and members may be added; pass over them."""

WHO = {"guest": "accounts, guests", "account": "accounts", "operator": "operators"}


def page() -> str:
    """The whole page."""
    heads = ["Event", "When", "For", "Needs"]
    return document(
        "# Events", INTRODUCTION, "## The events", table(heads, map(row, EVENTS)), *members()
    )


def row(event: EventRow) -> list[str]:
    needs = f"`{event.needs}`" if event.needs else ""
    return [f"`{event.name}`", event.when, WHO[event.who], needs]


def members() -> Iterator[str]:
    """The data of each event."""
    yield "## Their data"
    yield "Each is a JSON object."
    for event in EVENTS:
        yield f"### `{event.name}`"
        hints = get_type_hints(event.data, include_extras=True)
        rows = [
            member(field.name, hints[field.name]) for field in msgspec.structs.fields(event.data)
        ]
        yield table(["Member", "Type", "Meaning"], rows) if rows else "It has no members."


def member(name: str, hint: Any) -> list[str]:
    """One member: its name, its type and what it means."""
    said = ""
    if get_origin(hint) is Annotated:
        hint, meta = get_args(hint)
        said = meta.description or ""
    return [f"`{name}`", type_of(hint), said]


def type_of(hint: Any) -> str:
    """A type as the page calls it."""
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(type_of, get_args(hint)))
    if get_origin(hint) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(hint))
    if get_origin(hint) is list:
        return "list of text"
    return {str: "text", int: "integer", bool: "true or false", NoneType: "null"}[hint]
