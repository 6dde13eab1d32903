"""`folkmoot tape`: list, show, compare, redact, export and replay tapes."""

from __future__ import annotations

from collections.abc import Callable

import typer

from folkmoot.cli.commands import Output, group, with_json_option
from folkmoot.cli.options import JsonOption
from folkmoot.cli.output import ExitCode
from folkmoot.cli.tape import replay
from folkmoot.cli.tape.options import (
    SAYERS,
    DirectionOption,
    ErrorsOption,
    ExportOption,
    FirstArgument,
    FollowOption,
    FormatOption,
    FromOption,
    FullOption,
    IgnoreOption,
    KeyOption,
    KindOption,
    LastOption,
    LimitOption,
    MethodOption,
    OverwriteOption,
    PairsOption,
    PathsArgument,
    RedactedArgument,
    RedactPathOption,
    SecondArgument,
    SessionOption,
    SlowerOption,
    TapeArgument,
    TapesArgument,
    TextOption,
    ToOption,
)


@with_json_option
def list_tapes(paths: PathsArgument = None) -> Output:
    """List tapes and what is on each.

    In a folder, looks at files that end in .jsonl or .jsonl.zst, and skips those that are not
    tapes. A tape without an end line is still being recorded, or its recorder was killed; it can
    still be used.
    """
    from folkmoot.cli.tape.files import list_paths

    return list_paths(paths or [])


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
    from folkmoot.cli.tape.timeline import TapeReader, from_the_last, show_tape
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
    reader = TapeReader(file, follow=follow)
    show_tape(reader, wanted, limit=limit, last=last, pairs=pairs, full=full, as_json=as_json)


@with_json_option
def stats(files: TapesArgument) -> Output:
    """Count calls, errors and latencies.

    The latency of a call is the time from its request to its answer at the proxy. Percentiles are
    measured latencies, by nearest rank; the chart shows the distribution.
    """
    from folkmoot.cli.tape.numbers import numbers_of

    return numbers_of(files)


@with_json_option
def redact(
    file: TapeArgument,
    out: RedactedArgument,
    paths: RedactPathOption = None,
    key: KeyOption = None,
) -> Output:
    """Write a copy of a tape without its secrets.

    Replaces tokens and other credentials, in headers, messages and JSON inside texts, and the text
    of mail. A secret becomes the same placeholder everywhere, so the new tape still replays. The
    original tape is not changed.

    Recordings are redacted by default. This is for tapes recorded without redaction, and for
    anything else you want to remove: name it with --path.
    """
    from folkmoot.cli.tape.files import redact_file

    return redact_file(file, out, paths or [], key)


def export(
    file: TapeArgument,
    form: FormatOption = "json",
    output: ExportOption = None,
    first: FromOption = None,
    to: ToOption = None,
    *,
    overwrite: OverwriteOption = False,
) -> None:
    """Write a tape as JSON, as HAR or as Markdown.

    json is everything on the tape as one document. har is an archive (HAR 1.2) that HTTP tools can
    show, with an entry for each call and its answer; calls that were not HTTP get an address such
    as stdio://server/tools/call?name=echo. markdown is a transcript for a bug report, with each
    message as a code block.

    What was redacted on the tape stays redacted. Everything else is in the output, so check it
    before you share it.
    """
    from folkmoot.cli.tape.files import export_tape

    export_tape(file, form, output, first or 0, to, overwrite=overwrite)


@with_json_option
def diff(a: FirstArgument, b: SecondArgument, ignore: IgnoreOption = None) -> Output:
    """Compare two tapes call by call; exit with 1 if they differ.

    Calls with the same method and arguments are compared, in their order. Reports answers that
    differ and where, errors that appeared or disappeared, calls on one tape only, and tools that
    were added, removed or changed. Ids, progress tokens, times and the order of answers are
    ignored. List items with names are compared by name, and text that is JSON by its content.
    Latencies of both tapes are shown, but are not a difference.
    """
    from folkmoot.cli.tape.numbers import differences

    return differences(a, b, ignore or [])


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_tapes,
    "show": show,
    "stats": stats,
    "diff": diff,
    "redact": redact,
    "export": export,
    "serve": replay.serve,
    "play": replay.play,
}

app = group(COMMANDS, "Inspect, compare and replay recorded conversations.")
