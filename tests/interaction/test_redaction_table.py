"""What the table of redaction knows is hidden in log lines, errors and tapes alike."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from folkmoot.core.redaction import NAMES
from folkmoot.proxy.redaction import TapeRedactor
from folkmoot.settings.fields import masked_arguments
from folkmoot.telemetry.logs import JsonFormatter, TextFormatter
from folkmoot.telemetry.redaction import clean, fields
from tests.core.secrets import EXAMPLES, SECRET
from tests.proxy.redaction.secrets import KEY, message

LEFT = 3
"""Letters of a secret that may be seen: `sk_` is no secret."""


def logged(format_: str, text: str) -> str:
    error = ValueError(text)
    record = logging.LogRecord(
        "folkmoot.test", logging.ERROR, "", 0, "failed: %s", (text,), (ValueError, error, None)
    )
    record.about, record.cause = text, error
    text_lines = TextFormatter(terminal=False, colour=False)
    return (JsonFormatter() if format_ == "json" else text_lines).format(record)


def taped(text: str) -> str:
    redactor = TapeRedactor(KEY)
    answer = message({"id": 1, "result": {"content": [{"type": "text", "text": text}]}})
    return (redactor.message(answer)[0] or b"").decode() + redactor.text(text)


WRITERS: dict[str, Callable[[str], str]] = {
    "a line of text": lambda text: logged("text", text),
    "a line of JSON": lambda text: logged("json", text),
    "an error": clean,
    "a tape": taped,
}


def pieces(secret: str) -> list[str]:
    """What must not be seen of a secret: the words of a key of several lines, or all of it."""
    lines = [line for line in secret.split("\n") if not line.startswith("-----")]
    return [line[LEFT:] for line in lines]


@pytest.mark.parametrize("where", WRITERS)
@pytest.mark.parametrize("row", EXAMPLES)
def test_a_secret_of_each_row_is_hidden_wherever_it_is_written(row: str, where: str) -> None:
    text, secret = EXAMPLES[row]
    written = WRITERS[where](text)
    assert "redacted" in written
    for piece in pieces(secret):
        assert piece not in written
    if where == "a line of JSON":
        json.loads(written)


@pytest.mark.parametrize("name", [*NAMES, "auth", "bearer"])
def test_a_value_under_the_name_of_a_secret_is_hidden_wherever_it_is_written(name: str) -> None:
    for spelled in (name, name.replace("_", "-"), f"my_{name}", name.title().replace("_", "")):
        if name in ("auth", "bearer") and spelled.startswith("my_"):
            continue
        assert SECRET not in str(fields({spelled: SECRET}))
        assert SECRET not in str(fields({"inner": {spelled: [SECRET]}}))
        body: dict[str, Any] = {"id": 1, "result": {"inner": {spelled: SECRET}}}
        on_tape, places = TapeRedactor(KEY).message(message(body))
        assert on_tape is not None
        assert SECRET.encode() not in on_tape
        assert [place.kind for place in places] == ["name"]
        assert SECRET not in " ".join(masked_arguments(["serve", f"--{spelled}", SECRET]))


def test_a_folder_is_shown_and_a_token_of_progress_too() -> None:
    values = {"PWD": "/srv/hub", "progressToken": "p-1234567"}
    assert fields(values) == values
    redacted, places = TapeRedactor(KEY).value(values)
    assert redacted == values
    assert not places
