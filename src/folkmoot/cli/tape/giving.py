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
    """Write a tape anew, without its secrets.

    Tokens and other things that open doors are replaced, in headers, in messages and in JSON inside
    of their texts, and so are the words of mail. A secret becomes a placeholder that is the same
    wherever the secret is, so that the new tape still replays. The tape itself stays as it is.

    A recording is redacted by itself. This is for tapes that were recorded without, and for what
    you want to keep to yourself besides: name it with --path.
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

    json is everything on the tape as one document. har is an archive (HAR 1.2) that the tools for
    HTTP can show: an entry for each call with its answer; what was no HTTP gets an address such as
    stdio://server/tools/call?name=echo. markdown is a transcript for a bug report, with each
    message as a block of code.

    What was redacted on the tape stays redacted; what was not is in the output as well, so look at
    it before you give it away.
    """
    from folkmoot.cli.tape.exporting import export_tape

    export_tape(file, form, output, first or 0, to, overwrite=overwrite)
