"""What the table of redaction knows is hidden in log lines, errors and tapes alike."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from folkmoot.accounts import credentials
from folkmoot.audit import row_of
from folkmoot.core.redaction import LAST_WORDS, NAMES
from folkmoot.proxy.redaction import TapeRedactor
from folkmoot.rooms.invitations import new_credential, new_invitation
from folkmoot.settings.fields import masked_arguments
from folkmoot.telemetry.logs import JsonFormatter, TextFormatter
from folkmoot.telemetry.redaction import clean, fields
from tests.core.secrets import EXAMPLES, SECRET
from tests.proxy.redaction.secrets import KEY, message

# Letters of a secret that may be seen: `sk_` is no secret.
LEFT = 3


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


def audited(text: str) -> str:
    record = logging.LogRecord("folkmoot.audit", logging.INFO, "", 0, "done", None, None)
    record.by, record.about, record.why = "ann", text, text
    return str(row_of(record))


WRITERS: dict[str, Callable[[str], str]] = {
    "a line of text": lambda text: logged("text", text),
    "a line of JSON": lambda text: logged("json", text),
    "an error": clean,
    "a tape": taped,
    "the audit log": audited,
}

# Whatever makes a secret that the hub gives to somebody. The short code of a device is none: its
# person types it, and without their session it opens nothing.
MADE: dict[str, Callable[[], str]] = {
    **{
        name: make
        for name, make in vars(credentials).items()
        if name.startswith("new_") and name not in {"new_key_pair", "new_user_code", "new_secret"}
    },
    **{
        f"new {kind}": partial(credentials.new_secret, kind)
        for kind in ("sk", "bs", "oc", "at", "rt", "ac", "dc")
    },
    "new_invitation": lambda: new_invitation().text,
    "new_credential": lambda: new_credential().text,
}


def pieces(secret: str) -> list[str]:
    """What must not be seen of a secret: the words of a key of several lines, or all of it."""
    lines = [line for line in secret.split("\n") if not line.startswith("-----")]
    return [line[LEFT:] for line in lines]


@pytest.mark.parametrize("where", WRITERS)
@pytest.mark.parametrize("row", EXAMPLES)
def test_a_secret_of_each_row_is_hidden_wherever_it_is_written(row, where):
    text, secret = EXAMPLES[row]
    written = WRITERS[where](text)
    assert "redacted" in written
    for piece in pieces(secret):
        assert piece not in written
    if where == "a line of JSON":
        json.loads(written)


@pytest.mark.parametrize("where", WRITERS)
@pytest.mark.parametrize("maker", MADE)
def test_every_secret_that_the_hub_makes_is_known_by_itself(maker, where):
    secret = MADE[maker]()
    for text in (f"it was {secret} then", f"at=https://hub.example/{secret}?x", f"<{secret}>"):
        assert secret[LEFT:] not in WRITERS[where](text)


@pytest.mark.parametrize("name", [*NAMES, *LAST_WORDS])
def test_a_value_under_the_name_of_a_secret_is_hidden_wherever_it_is_written(name):
    camel = name.title().replace("_", "")
    for spelled in (name, name.replace("_", "-"), f"my_{name}", camel, f"db{camel}", name.upper()):
        if spelled == "PWD":
            continue
        assert SECRET not in str(fields({spelled: SECRET}))
        assert SECRET not in str(fields({"inner": {spelled: [SECRET]}}))
        body: dict[str, Any] = {"id": 1, "result": {"inner": {spelled: SECRET}}}
        on_tape, places = TapeRedactor(KEY).message(message(body))
        assert on_tape is not None
        assert SECRET.encode() not in on_tape
        assert [place.kind for place in places] == ["name"]
        assert SECRET not in " ".join(masked_arguments(["serve", f"--{spelled}", SECRET]))
        # The other writers hide what the error hides, as the rows above show.
        for where in ("an error", "a tape"):
            for text in (
                f"{spelled}={SECRET}",
                f"env: {spelled}: {SECRET}",
                f'{{"{spelled}": "{SECRET}"',
                f"ran --{spelled} {SECRET} now",
                f"<{spelled}>{SECRET}</{spelled}>",
                f"https://a.example/?a=1&{spelled}={SECRET}&b=2",
            ):
                assert SECRET not in WRITERS[where](text), (where, text)


@pytest.mark.parametrize(
    "name",
    ["author", "passage", "compass", "bypass", "passed", "authority", "hotp_drift", "spin", "key"],
)
def test_what_only_has_the_letters_of_a_name_is_shown(name):
    for spelled in (name, f"my_{name}", f"my{name.title()}"):
        assert fields({spelled: "north-west"}) == {spelled: "north-west"}
        assert TapeRedactor(KEY).value({spelled: "north-west"}) == ({spelled: "north-west"}, ())
        for text in (f"{spelled}=north-west", f"{spelled}: north-west", f"--{spelled} north-west"):
            assert clean(text) == TapeRedactor(KEY).text(text) == text


def test_several_secrets_under_one_name_are_hidden_and_their_number_is_not():
    assert SECRET not in str(fields({"api_keys": [SECRET], "dbPasswords": {"a": SECRET}}))
    assert fields({"tokens": 12}) == {"tokens": 12}


def test_a_folder_is_shown_and_a_token_of_progress_too():
    values = {"PWD": "/srv/hub", "progressToken": "p-1234567"}
    assert fields(values) == values
    redacted, places = TapeRedactor(KEY).value(values)
    assert redacted == values
    assert not places
