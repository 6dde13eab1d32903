"""Keeps secrets out of tapes, as placeholders under which equal secrets stay equal."""

from __future__ import annotations

from folkmoot.proxy.redaction.placeholders import (
    PLACEHOLDER,
    RedactedPlace,
    folder_key,
    own_key_file,
    redaction_key,
)
from folkmoot.proxy.redaction.redactor import TapeRedactor
