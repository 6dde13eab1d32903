"""Tapes: listed, read by pages and downloaded. `folkmoot tape` does more.

They are those that the hub records and, for operators who may see them, those that proxies of the
hub's own user recorded on its machine. A tape is shown as it was recorded: what was redacted then
is not there to be shown.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.scopes import OPERATE
from folkmoot.operations.call import FileAnswer
from folkmoot.operations.declare import OPERATED, Topic, get
from folkmoot.operations.operator.held import may_see_proxies
from folkmoot.operations.records import leave_line
from folkmoot.operations.row import Absent, AuditSpec, Cursor, PageLimit, describe
from folkmoot.proxy.tape_views import TapeAnswer, TapeCall, TapeMessage, TapeRow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from folkmoot.operations.call import Call
    from folkmoot.proxy.tape.folder import TapeFolder, TapeLibrary

PATH: Final = "/v1/tapes/{tape}"
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
operate = Topic(
    scope=OPERATE,
    who="operator",
    needs=("tapes",),
    tool=OPERATED,
    commands=Absent(
        "'folkmoot tape' reads the files themselves: also those of a proxy, and with no hub "
        "running."
    ),
)


def library_of(call: Call) -> TapeLibrary:
    """The tapes that the hub can show."""
    if call.services.tapes is None:
        raise e.TapeNotFound("This hub has no tapes.")
    return call.services.tapes


@asynccontextmanager
async def reading(call: Call, tape: str, place: str | None) -> AsyncIterator[TapeFolder]:
    """The folder of the tape being read, which is told to the audit log if the tape could be read.

    It is told once in a while for each reader and tape: a page that follows a tape asks often.
    """
    library, services, account = library_of(call), call.services, call.caller.account
    yield await library.find(place or "", proxies=may_see_proxies(call))
    by = "" if account is None else account.id
    if library.is_new_reader(by, place or "", tape, services.clock.monotonic()):
        await leave_line(services, call.caller, READ, tape)


class TapeRows(Struct, frozen=True):
    """Some tapes, the last written first."""

    tapes: list[TapeRow]
    next_cursor: str | None


@operate.reads(
    "folkmoot/tapes",
    get("/v1/tapes", "listTapes", "List tapes", answer="The tapes."),
    errors=(e.TapeNotFound,),
)
async def tapes(call: Call, *, limit: PageLimit = 100, cursor: Cursor | None = None) -> TapeRows:
    """List the tapes in the folder that the hub records to, the last written first: their sizes,
    when each was started and ended, how many messages it has, and whether it is being recorded
    now. A tape without an end that is not being recorded had its recorder killed. Tapes of proxies
    that the hub's own user ran on its machine are listed too, for the operators of the setting
    `interceptors.local_proxies`.
    """
    proxies = may_see_proxies(call)
    return TapeRows(*await library_of(call).page(cursor, limit, proxies=proxies))


class TapeEntries(Struct, frozen=True):
    """Some lines of a tape, each an object as the tape format has it."""

    entries: list[dict[str, Any]]
    next_cursor: str | None


@operate.reads(
    "folkmoot/tape",
    get(PATH, "readTape", "Read a tape", answer="Some of its lines."),
    errors=(e.TapeNotFound, e.TapeUnreadable),
    audit=AuditSpec(READ, "tape", by_service=True),
)
async def read_tape(
    call: Call,
    tape: Name,
    *,
    place: Place | None = None,
    limit: PageLimit = 100,
    cursor: Cursor | None = None,
) -> TapeEntries:
    """Read the lines of a tape, from its beginning. A line of more than 1 MiB is only named. Of a
    tape that is being recorded there is always a next page.
    """
    async with reading(call, tape, place) as folder:
        page = await folder.read(tape, cursor, limit)
    # They were decoded where they were read, and are passed on as they are.
    entries: Any = page.entries
    return TapeEntries(entries, page.next_cursor)


@read_tape.at(
    get(
        PATH + "/about",
        "getTape",
        "Show one tape",
        "One tape as the list has it.",
        answer="The tape.",
    )
)
async def tape_about(call: Call, tape: Name, *, place: Place | None = None) -> TapeRow:
    async with reading(call, tape, place) as folder:
        return await folder.about(tape)


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


@read_tape.at(
    get(
        PATH + "/messages",
        "listTapeMessages",
        "Read a tape's timeline",
        "Messages of a tape in a line each, from a place on, before a place, or the last ones, and "
        "only those that a filter accepts. At most 4 MiB of the tape are read for an answer, which "
        "says where to go on. A compressed tape has to be decompressed up to that place.",
        answer="Some messages.",
    )
)
async def tape_timeline(
    call: Call,
    tape: Name,
    *,
    place: Place | None = None,
    limit: PageLimit = 100,
    cursor: Cursor | None = None,
    before: Annotated[str, "Messages before this place: the previous_cursor of an earlier answer."]
    | None = None,
    last: Annotated[bool, "Whether to begin with the last messages."] = False,
    method: Words | None = None,
    name: Words | None = None,
    direction: Annotated[
        Literal["client_to_server", "server_to_client"], "Messages of one side only."
    ]
    | None = None,
    text: Annotated[str, describe("Messages that contain this text.", max_length=200)]
    | None = None,
    errors: Annotated[
        bool, "Whether only errors, failed tools and blocked messages are wanted."
    ] = False,
) -> TapeTimeline:
    from folkmoot.proxy.tape.pages import Filter

    wanted = Filter(
        method=method or "",
        name=name or "",
        direction=direction,
        text=text or "",
        errors=errors,
    )
    async with reading(call, tape, place) as folder:
        found, stored = await folder.timeline(
            tape, limit, cursor=cursor, before=before, last=last, wanted=wanted
        )
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


def next_of(begin: int, end: int, size: int | None, *, recording: bool) -> str | None:
    """Where to go on: nowhere once the end was reached, or an unfinished last line."""
    done = end == begin or (size is not None and end >= size)
    return None if done and not recording else str(end)


class TapePair(Struct, frozen=True, kw_only=True):
    """One message in full, in the tape format, with the other half of its call."""

    line: dict[str, Any]
    other: dict[str, Any] | None
    outcome: str
    seconds: float | None
    complete: bool
    """False where the other half may be further away than is searched."""


@read_tape.at(
    get(
        PATH + "/messages/{offset}",
        "getTapeMessage",
        "Show a message of a tape",
        "One message in full, with the request that it answers or the answer that it got, if that "
        "is within 4 MiB. A line of more than 512 KiB is only named.",
        answer="The message.",
    )
)
async def tape_message(
    call: Call,
    tape: Name,
    *,
    place: Place | None = None,
    offset: Annotated[
        int, describe("Where the message begins, as the timeline tells it.", ge=0, le=10**15)
    ],
) -> TapePair:
    async with reading(call, tape, place) as folder:
        found = await folder.message(tape, offset)
    line: Any = found.line
    other: Any = found.other
    return TapePair(
        line=line,
        other=other,
        outcome=found.outcome,
        seconds=found.seconds,
        complete=found.ended,
    )


class TapeCalls(Struct, frozen=True, kw_only=True):
    """Some requests and answers of a tape."""

    calls: list[TapeCall]
    answers: list[TapeAnswer]
    messages: int
    next_cursor: str | None
    end: int
    size: int | None
    recording: bool


@read_tape.at(
    get(
        PATH + "/calls",
        "listTapeCalls",
        "List the calls of a tape",
        "Requests and answers without their contents, from a place on: for statistics, and to "
        "compare tapes. At most 2 MiB of the tape are read for an answer.",
        answer="Some calls.",
    )
)
async def tape_calls(
    call: Call,
    tape: Name,
    *,
    place: Place | None = None,
    cursor: Cursor | None = None,
    compare: Annotated[
        Literal["exact", "kinds"],
        "Whether to give digests of parameters and answers, to compare two tapes. kinds: secrets "
        "count by their kind alone, for tapes that were redacted with different keys.",
    ]
    | None = None,
) -> TapeCalls:
    async with reading(call, tape, place) as folder:
        found, stored = await folder.calls(tape, cursor, compare)
    size = None if stored.compressed else stored.bytes
    return TapeCalls(
        calls=found.calls,
        answers=found.answers,
        messages=found.messages,
        next_cursor=next_of(int(cursor or 0), found.end, size, recording=stored.recording),
        end=found.end,
        size=size,
        recording=stored.recording,
    )


@read_tape.at(
    get(
        PATH + "/file",
        "downloadTape",
        "Download a tape",
        "The whole tape as it is stored, compressed if it is.",
        answer="The file.",
        media=MEDIA,
    )
)
async def download_tape(call: Call, tape: Name, *, place: Place | None = None) -> FileAnswer:
    async with reading(call, tape, place) as folder:
        size, file = await folder.open(tape)
    return FileAnswer(tape, size, file)
