"""The tapes that a hub records: listed, read by pages, downloaded. `folkmoot tape` does more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from folkmoot.core.errors import TapeNotFound, TapeUnreadable
from folkmoot.core.scopes import OPERATE
from folkmoot.operations.call import FileAnswer
from folkmoot.operations.row import (
    Absent,
    Arguments,
    Audit,
    Cursor,
    Operation,
    PageLimit,
    Route,
    says,
)

if TYPE_CHECKING:
    from folkmoot.operations.call import Call
    from folkmoot.proxy.tape.folder import TapeFolder

PATH: Final = "/v1/tapes"
MEDIA: Final = "application/octet-stream"
Name = Annotated[str, says("The name of the tape.", min_length=1, max_length=128)]
NO_TOOL: Final = Absent("Operating a hub is for people and their programs, not for models.")
NO_COMMAND: Final = Absent(
    "'folkmoot tape' reads the files themselves: also those of a proxy, and with no hub running."
)


class ListTapes(Arguments, frozen=True, kw_only=True):
    """Which tapes."""

    limit: PageLimit = 100
    cursor: Cursor | None = None


class ReadTape(Arguments, frozen=True, kw_only=True):
    """Which lines of which tape."""

    tape: Name
    limit: PageLimit = 100
    cursor: Cursor | None = None


class OneTape(Arguments, frozen=True, kw_only=True):
    """Which tape."""

    tape: Name


class TapeRow(Struct, frozen=True, kw_only=True):
    """One tape."""

    name: str
    bytes: int
    modified_at: float
    started: str
    ended: str | None
    messages: int | None
    client: str
    server: str
    compressed: bool


class TapeRows(Struct, frozen=True):
    """Some tapes, by name."""

    tapes: list[TapeRow]
    next_cursor: str | None


class TapeEntries(Struct, frozen=True):
    """Some lines of a tape, each an object as the tape format has it."""

    entries: list[dict[str, Any]]
    next_cursor: str | None


def folder_of(call: Call[Any]) -> TapeFolder:
    """The tapes of the hub."""
    if call.services.tapes is None:
        raise TapeNotFound("This hub has no tapes.")
    return call.services.tapes


async def tapes(call: Call[ListTapes]) -> TapeRows:
    """A page of tapes."""
    given = call.arguments
    found = await folder_of(call).page(given.cursor or "", given.limit)
    rows = [
        TapeRow(
            name=one.name,
            bytes=one.bytes,
            modified_at=one.modified_at,
            started=one.started,
            ended=one.ended,
            messages=one.messages,
            client=one.client,
            server=one.server,
            compressed=one.compressed,
        )
        for one in found
    ]
    return TapeRows(rows, rows[-1].name if len(rows) == given.limit else None)


async def read_tape(call: Call[ReadTape]) -> TapeEntries:
    """A page of a tape."""
    given = call.arguments
    page = await folder_of(call).read(given.tape, given.cursor, given.limit)
    # They were decoded where they were read, and are passed on as they are.
    entries: Any = page.entries
    return TapeEntries(entries, page.next_cursor)


async def download_tape(call: Call[OneTape]) -> FileAnswer:
    """A whole tape as it is stored."""
    size, file = await folder_of(call).open(call.arguments.tape)
    return FileAnswer(call.arguments.tape, size, file)


TAPES: Final = (
    Operation(
        name="folkmoot/tapes",
        description="List the tapes in the folder that the hub records to: their sizes, when each "
        "was started and ended, and how many messages it has. A tape without an end is being "
        "recorded, or its recorder was killed.",
        takes=ListTapes,
        gives=TapeRows,
        handler=tapes,
        scope=OPERATE,
        who="operator",
        effect="reads",
        errors=(TapeNotFound,),
        needs=("tapes",),
        tool=NO_TOOL,
        routes=(Route("GET", PATH, "listTapes", "List tapes", answer="The tapes, by name."),),
        commands=NO_COMMAND,
    ),
    Operation(
        name="folkmoot/tape",
        description="Read the lines of a tape, from its beginning. A line of more than 1 MiB is "
        "only named. Of a tape that is being recorded there is always a next page.",
        takes=ReadTape,
        gives=TapeEntries,
        handler=read_tape,
        scope=OPERATE,
        who="operator",
        effect="reads",
        errors=(TapeNotFound, TapeUnreadable),
        needs=("tapes",),
        tool=NO_TOOL,
        audit=Audit("tape.read", "tape"),
        routes=(
            Route("GET", PATH + "/{tape}", "readTape", "Read a tape", answer="Some of its lines."),
            Route(
                "GET",
                PATH + "/{tape}/file",
                "downloadTape",
                "Download a tape",
                description="The whole tape as it is stored, compressed if it is.",
                answer="The file.",
                takes=OneTape,
                handler=download_tape,
                media=MEDIA,
            ),
        ),
        commands=NO_COMMAND,
    ),
)
