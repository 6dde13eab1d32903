"""The commands that look at tapes: `list`, `show` and `stats`.

What they need to read tapes is loaded by the one that is run.
"""

from __future__ import annotations

import typer

from folkmoot.cli.options import JsonOption
from folkmoot.cli.tape.options import (
    SAYERS,
    DirectionOption,
    ErrorsOption,
    FollowOption,
    FromOption,
    FullOption,
    KindOption,
    LastOption,
    LimitOption,
    MethodOption,
    PairsOption,
    PathsArgument,
    SessionOption,
    SlowerOption,
    TapeArgument,
    TapesArgument,
    TextOption,
    ToOption,
)


def list_tapes(paths: PathsArgument = None, *, as_json: JsonOption = False) -> None:
    """List tapes and what is on each.

    In a folder, looks at files that end in .jsonl or .jsonl.zst, and skips those that are not
    tapes. A tape without an end line is still being recorded, or its recorder was killed; it can
    still be used.
    """
    from folkmoot.cli.tape.listing import list_paths

    list_paths(paths or [], as_json=as_json)


def show(
    file: TapeArgument,
    method: MethodOption = None,
    kind: KindOption = None,
    direction: DirectionOption = None,
    text: TextOption = None,
    session: SessionOption = None,
    first: FromOption = None,
    to: ToOption = None,
    limit: LimitOption = None,
    last: LastOption = None,
    slower_than: SlowerOption = None,
    *,
    errors: ErrorsOption = False,
    pairs: PairsOption = False,
    full: FullOption = False,
    follow: FollowOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show a tape as a timeline.

    Each message is a line: its number, the seconds since the first one, its direction, what it
    calls or answers, how long the answer took, and its content. What an interceptor did and what
    was redacted is in brackets.

    A tape can be shown while it is being recorded. With --json, each message is a JSON object on
    one line.
    """
    if follow and pairs:
        raise typer.BadParameter("--follow and --pairs cannot be combined")
    if last and limit:
        raise typer.BadParameter("--limit and --last cannot be combined")
    from folkmoot.cli.tape.showing import Reel, from_the_last, show_reel
    from folkmoot.proxy.tape.timeline import MessageFilter

    wanted = MessageFilter.of(
        methods=method or (),
        kinds=kind or (),
        direction=SAYERS[direction] if direction else None,
        text=text or "",
        errors=errors,
        session=session or "",
        first=first or 0,
        last=to,
        slower=slower_than,
    )
    if follow and last:
        wanted, last = from_the_last(file, wanted, last), None
    reel = Reel(file, follow=follow)
    show_reel(reel, wanted, limit=limit, last=last, pairs=pairs, full=full, as_json=as_json)


def stats(files: TapesArgument, *, as_json: JsonOption = False) -> None:
    """Count calls, errors and latencies.

    The latency of a call is the time from its request to its answer at the proxy. Percentiles are
    measured latencies, by nearest rank; the chart shows the distribution.
    """
    from folkmoot.cli.tape.numbers import tell_numbers

    tell_numbers(files, as_json=as_json)
