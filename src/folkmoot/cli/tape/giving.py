"""The commands that make something of a tape that can be given away: `redact` and `export`."""

from __future__ import annotations

from folkmoot.cli.options import JsonOption
from folkmoot.cli.tape.options import (
    ExportOption,
    FormatOption,
    FromOption,
    KeyOption,
    OverwriteOption,
    RedactedArgument,
    RedactPathOption,
    TapeArgument,
    ToOption,
)


def redact(
    file: TapeArgument,
    out: RedactedArgument,
    paths: RedactPathOption = None,
    key: KeyOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Write a copy of a tape without its secrets.

    Replaces tokens and other credentials, in headers, messages and JSON inside texts, and the text
    of mail. A secret becomes the same placeholder everywhere, so the new tape still replays. The
    original tape is not changed.

    Recordings are redacted by default. This is for tapes recorded without redaction, and for
    anything else you want to remove: name it with --path.
    """
    from folkmoot.cli.tape.redacting import redact_file

    redact_file(file, out, paths or [], key, as_json=as_json)


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
    from folkmoot.cli.tape.exporting import export_tape

    export_tape(file, form, output, first or 0, to, overwrite=overwrite)
