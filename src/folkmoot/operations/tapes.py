"""Tapes: listed, read by pages and downloaded. `folkmoot tape` does more.

They are those that the hub records and, for operators who may see them, those that proxies of the
hub's own user recorded on its machine. A tape is shown as it was recorded: what was redacted then
is not there to be shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.scopes import OPERATE
from folkmoot.operations.call import FileAnswer
from folkmoot.operations.operator.held import may_see_proxies
from folkmoot.operations.records import leave_line
from folkmoot.operations.row import (
    Absent,
    Arguments,
    AuditSpec,
    Cursor,
    Operation,
    PageLimit,
    Route,
    describe,
)
from folkmoot.proxy.tape_views import TapeAnswer, TapeCall, TapeMessage, TapeRow

if TYPE_CHECKING:
    from folkmoot.operations.call import Call
    from folkmoot.proxy.tape.folder import TapeFolder, TapeLibrary

PATH: Final = "/v1/tapes"
MEDIA: Final = "application/octet-stream"
READ: Final = "tape.read"
Name = Annotated[str, describe("The name of the tape.", min_length=1, max_length=128)]
Place = Annotated[
    str,
    describe(
        "Where the tape is, as the list tells it; left out, the hub's own folder.",
        pattern="^[0-9a-f]{12}$",
    ),
]
Words = Annotated[str, describe("May stand anywhere, unless a * says where.", max_length=128)]
NO_TOOL: Final = Absent("Operating a hub is for people and their programs, not for models.")
NO_COMMAND: Final = Absent(
    "'folkmoot tape' reads the files themselves: also those of a proxy, and with no hub running."
)


class ListTapes(Arguments, frozen=True, kw_only=True):
    """Which tapes."""

    limit: PageLimit = 100
    cursor: Cursor | None = None


class OneTape(Arguments, frozen=True, kw_only=True):
    """Which tape."""

    tape: Name
    place: Place | None = None


class ReadTape(OneTape, frozen=True, kw_only=True):
    """Which lines of which tape."""

    limit: PageLimit = 100
    cursor: Cursor | None = None


class ReadTimeline(ReadTape, frozen=True, kw_only=True):
    """Which messages of which tape."""

    before: (
        Annotated[
            str,
            describe("Messages before this place: the previous_cursor of an earlier answer."),
        ]
        | None
    ) = None
    last: Annotated[bool, describe("Whether to begin with the last messages.")] = False
    method: Words | None = None
    name: Words | None = None
    direction: (
        Annotated[
            Literal["client_to_server", "server_to_client"], describe("Messages of one side only.")
        ]
        | None
    ) = None
    text: Annotated[str, describe("Messages that contain this text.", max_length=200)] | None = None
    errors: Annotated[
        bool, describe("Whether only errors, failed tools and blocked messages are wanted.")
    ] = False


class OneMessage(OneTape, frozen=True, kw_only=True):
    """Which message of which tape."""

    offset: Annotated[
        int, describe("Where the message begins, as the timeline tells it.", ge=0, le=10**15)
    ]


class ReadCalls(OneTape, frozen=True, kw_only=True):
    """Which calls of which tape."""

    cursor: Cursor | None = None
    compare: (
        Annotated[
            Literal["exact", "kinds"],
            describe(
                "Whether to give digests of parameters and answers, to compare two tapes. kinds: "
                "secrets count by their kind alone, for tapes that were redacted with different "
                "keys."
            ),
        ]
        | None
    ) = None


class TapeRows(Struct, frozen=True):
    """Some tapes, the last written first."""

    tapes: list[TapeRow]
    next_cursor: str | None


class TapeEntries(Struct, frozen=True):
    """Some lines of a tape, each an object as the tape format has it."""

    entries: list[dict[str, Any]]
    next_cursor: str | None


class TapeTimeline(Struct, frozen=True, kw_only=True):
    """Some messages of a tape, in their order."""

    messages: list[TapeMessage]
    next_cursor: str | None
    """Where to go on; also where only a part of the tape was searched, and while it is recorded."""
    previous_cursor: str | None
    """Before which place earlier messages are."""
    begin: int
    end: int
    """What part of the tape was read."""
    size: int | None
    """How long the tape is; null where it is compressed."""
    recording: bool


class TapePair(Struct, frozen=True, kw_only=True):
    """One message in full, in the tape format, with the other half of its call."""

    line: dict[str, Any]
    other: dict[str, Any] | None
    outcome: str
    seconds: float | None
    complete: bool
    """False where the other half may be further away than is searched."""


class TapeCalls(Struct, frozen=True, kw_only=True):
    """Some requests and answers of a tape."""

    calls: list[TapeCall]
    answers: list[TapeAnswer]
    messages: int
    next_cursor: str | None
    end: int
    size: int | None
    recording: bool


def library_of(call: Call[Any]) -> TapeLibrary:
    """The tapes that the hub can show."""
    if call.services.tapes is None:
        raise e.TapeNotFound("This hub has no tapes.")
    return call.services.tapes


async def folder_of(call: Call[Any]) -> TapeFolder:
    """The folder of the tape being read."""
    place: str | None = call.arguments.place
    return await library_of(call).find(place or "", proxies=may_see_proxies(call))


async def note_read(call: Call[Any]) -> None:
    """Have in the audit log that someone reads a tape, once in a while."""
    given: OneTape = call.arguments
    services, account = call.services, call.caller.account
    by = "" if account is None else account.id
    now = services.clock.monotonic()
    if library_of(call).is_new_reader(by, given.place or "", given.tape, now):
        await leave_line(services, call.caller, READ, given.tape)


async def tapes(call: Call[ListTapes]) -> TapeRows:
    """A page of tapes."""
    given = call.arguments
    proxies = may_see_proxies(call)
    return TapeRows(*await library_of(call).page(given.cursor, given.limit, proxies=proxies))


async def read_tape(call: Call[ReadTape]) -> TapeEntries:
    """A page of a tape."""
    given = call.arguments
    page = await (await folder_of(call)).read(given.tape, given.cursor, given.limit)
    await note_read(call)
    # They were decoded where they were read, and are passed on as they are.
    entries: Any = page.entries
    return TapeEntries(entries, page.next_cursor)


async def tape_about(call: Call[OneTape]) -> TapeRow:
    found = await (await folder_of(call)).about(call.arguments.tape)
    await note_read(call)
    return found


async def tape_timeline(call: Call[ReadTimeline]) -> TapeTimeline:
    """A page of a timeline."""
    from folkmoot.proxy.tape.pages import Filter

    given = call.arguments
    wanted = Filter(
        method=given.method or "",
        name=given.name or "",
        direction=given.direction,
        text=given.text or "",
        errors=given.errors,
    )
    found, stored = await (await folder_of(call)).timeline(
        given.tape,
        given.limit,
        cursor=given.cursor,
        before=given.before,
        last=given.last,
        wanted=wanted,
    )
    await note_read(call)
    size = None if stored.compressed else stored.bytes
    return TapeTimeline(
        messages=found.messages,
        next_cursor=next_of(found.begin, found.end, size, recording=stored.recording),
        previous_cursor=str(found.begin) if found.begin else None,
        begin=found.begin,
        end=found.end,
        size=size,
        recording=stored.recording,
    )


async def tape_message(call: Call[OneMessage]) -> TapePair:
    given = call.arguments
    found = await (await folder_of(call)).message(given.tape, given.offset)
    await note_read(call)
    line: Any = found.line
    other: Any = found.other
    return TapePair(
        line=line,
        other=other,
        outcome=found.outcome,
        seconds=found.seconds,
        complete=found.ended,
    )


async def tape_calls(call: Call[ReadCalls]) -> TapeCalls:
    """A page of calls."""
    given = call.arguments
    folder = await folder_of(call)
    found, stored = await folder.calls(given.tape, given.cursor, given.compare)
    await note_read(call)
    size = None if stored.compressed else stored.bytes
    begin = int(given.cursor or 0)
    return TapeCalls(
        calls=found.calls,
        answers=found.answers,
        messages=found.messages,
        next_cursor=next_of(begin, found.end, size, recording=stored.recording),
        end=found.end,
        size=size,
        recording=stored.recording,
    )


def next_of(begin: int, end: int, size: int | None, *, recording: bool) -> str | None:
    """Where to go on: nowhere once the end was reached, or an unfinished last line."""
    done = end == begin or (size is not None and end >= size)
    return None if done and not recording else str(end)


async def download_tape(call: Call[OneTape]) -> FileAnswer:
    """A whole tape as it is stored."""
    size, file = await (await folder_of(call)).open(call.arguments.tape)
    await note_read(call)
    return FileAnswer(call.arguments.tape, size, file)


TAPES: Final = (
    Operation(
        name="folkmoot/tapes",
        description="List the tapes in the folder that the hub records to, the last written first: "
        "their sizes, when each was started and ended, how many messages it has, and whether it is "
        "being recorded now. A tape without an end that is not being recorded had its recorder "
        "killed. Tapes of proxies that the hub's own user ran on its machine are listed too, for "
        "the operators of the setting `interceptors.local_proxies`.",
        handler=tapes,
        scope=OPERATE,
        who="operator",
        errors=(e.TapeNotFound,),
        needs=("tapes",),
        tool=NO_TOOL,
        routes=(Route("GET", PATH, "listTapes", "List tapes", answer="The tapes."),),
        commands=NO_COMMAND,
    ),
    Operation(
        name="folkmoot/tape",
        description="Read the lines of a tape, from its beginning. A line of more than 1 MiB is "
        "only named. Of a tape that is being recorded there is always a next page.",
        handler=read_tape,
        scope=OPERATE,
        who="operator",
        errors=(e.TapeNotFound, e.TapeUnreadable),
        needs=("tapes",),
        tool=NO_TOOL,
        # Once in ten minutes for each reader and tape: a page that follows a tape asks often.
        audit=AuditSpec(READ, "tape", by_service=True),
        routes=(
            Route("GET", PATH + "/{tape}", "readTape", "Read a tape", answer="Some of its lines."),
            Route(
                "GET",
                PATH + "/{tape}/about",
                "getTape",
                "Show one tape",
                description="One tape as the list has it.",
                answer="The tape.",
                handler=tape_about,
            ),
            Route(
                "GET",
                PATH + "/{tape}/messages",
                "listTapeMessages",
                "Read a tape's timeline",
                description="Messages of a tape in a line each, from a place on, before a place, "
                "or the last ones, and only those that a filter accepts. At most 4 MiB of the tape "
                "are read for an answer, which says where to go on. A compressed tape has to be "
                "decompressed up to that place.",
                answer="Some messages.",
                handler=tape_timeline,
            ),
            Route(
                "GET",
                PATH + "/{tape}/messages/{offset}",
                "getTapeMessage",
                "Show a message of a tape",
                description="One message in full, with the request that it answers or the answer "
                "that it got, if that is within 4 MiB. A line of more than 512 KiB is only named.",
                answer="The message.",
                handler=tape_message,
            ),
            Route(
                "GET",
                PATH + "/{tape}/calls",
                "listTapeCalls",
                "List the calls of a tape",
                description="Requests and answers without their contents, from a place on: for "
                "statistics, and to compare tapes. At most 2 MiB of the tape are read for an "
                "answer.",
                answer="Some calls.",
                handler=tape_calls,
            ),
            Route(
                "GET",
                PATH + "/{tape}/file",
                "downloadTape",
                "Download a tape",
                description="The whole tape as it is stored, compressed if it is.",
                answer="The file.",
                handler=download_tape,
                media=MEDIA,
            ),
        ),
        commands=NO_COMMAND,
    ),
)
