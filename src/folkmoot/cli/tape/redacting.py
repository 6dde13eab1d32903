"""A tape without secrets, and what was left out of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from folkmoot.cli.output import aligned, say
from folkmoot.cli.tape.words import number
from folkmoot.cli.text import one_line, say_data
from folkmoot.proxy.redaction import TapeRedactor, own_key_file, redaction_key
from folkmoot.proxy.redaction.placeholders import FOLDER_KEY
from folkmoot.proxy.tape.lines import MessageLine
from folkmoot.proxy.tape.reader import follow_lines
from folkmoot.proxy.tape.rewrite import redact_tape

KINDS = {
    "form": "known by their form",
    "name": "known by their names",
    "header": "headers",
    "context": "sessions and transports",
    "mail": "words of mail",
    "path": "named by paths",
}
"""What was replaced, by the kind of its place."""


def redact_file(
    file: Path, out: Path, paths: Sequence[str], key: Path | None, *, as_json: bool
) -> None:
    """Write a tape anew without its secrets, and tell what was replaced."""
    redactor = TapeRedactor(redaction_key(key or key_of(file)), paths=paths)
    counts = redact_tape(file, out, redactor)
    replaced = kinds(out) - kinds(file)
    if as_json:
        told = {"messages": counts.messages, "changed": counts.redacted, "places": counts.places}
        say_data({**told, "kinds": dict(replaced), "key": redactor.key_id, "file": str(out)})
        return
    if not counts.places:
        say(f"Nothing to redact; {one_line(str(out))} has the same content.")
        return
    changed = f"{number(counts.places, 'place')} in {number(counts.redacted, 'message')}"
    say(f"Replaced {changed} of {counts.messages:,}; the new tape is {one_line(str(out))}.")
    for line in aligned(
        (f"{count:>6,}", KINDS.get(kind, kind)) for kind, count in replaced.most_common()
    ):
        say(line)


def key_of(file: Path) -> Path:
    """The key of the folder that a tape is in, if it has one, so that its tapes stay alike."""
    beside = file.absolute().parent / FOLDER_KEY
    return beside if beside.exists() else own_key_file(os.environ, Path.home())


def kinds(file: Path) -> Counter[str]:
    """How much of each kind was left out of a tape."""
    found: Counter[str] = Counter()
    for line in follow_lines(file):
        if isinstance(line, MessageLine):
            found.update(place.kind for place in line.redacted)
    return found
