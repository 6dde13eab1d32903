"""Tapes: recorded conversations, a JSON line for each event.

`TapeRecorder` writes them, `read_tape` and `follow_lines` read them, `lines` says what is in them.
"""

from __future__ import annotations

from folkmoot.proxy.redaction.placeholders import RedactedPlace
from folkmoot.proxy.tape.file import new_name
from folkmoot.proxy.tape.lines import (
    FORMAT,
    CorrelationLine,
    EndLine,
    Header,
    Line,
    MessageLine,
    RedactionNote,
    TapeSide,
)
from folkmoot.proxy.tape.model import Tape, TapeEntry
from folkmoot.proxy.tape.reader import follow_lines, read_tape
from folkmoot.proxy.tape.recorder import TapeRecorder
from folkmoot.proxy.tape.rewrite import RedactionCounts, redact_tape
