"""What is secret of a backend, and what of it callers and logs could come to hear."""

from __future__ import annotations

import pytest

from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.relay.upstream.connecting import Connecting
from folkmoot.relay.upstream.health import for_callers, given_up
from folkmoot.relay.upstream.requests import Unanswered
from folkmoot.relay.upstream.secrets import child_environment, headers_of
from folkmoot.settings.backends import BackendSpec
from folkmoot.telemetry.redaction import Redactor, clean

REACHED = "The server at https://example.org/s/9f31c0ffee77/mcp cannot be reached: it is away."


def test_a_secret_that_stands_in_the_settings_is_in_no_log():
    child_environment({"API_KEY": "open-sesame-1", "MODE": "quite-harmless"}, {})
    headers_of({"authorization": "Bearer open-sesame-2", "x-mode": "rather-harmless"}, {})
    told = clean("open-sesame-1 open-sesame-2 quite-harmless rather-harmless")
    assert "sesame" not in told
    assert told.endswith("quite-harmless rather-harmless")


def test_a_secret_in_the_path_of_an_address_is_in_no_log():
    url = "https://example.org/api/long-folder-name/9f31c0ffee77d2/mcp?key=abc"
    connecting = Connecting(BackendSpec(name="demo", namespace="demo", url=url), SystemClock(), {})
    assert connecting.target == "https://example.org/api/long-folder-name/[redacted]/mcp"
    assert "9f31c0ffee77d2" not in clean(f"The server at {url} is away.")


@pytest.mark.parametrize(
    ("why", "told"),
    [
        (REACHED, "The server cannot be reached: it is away."),
        (
            "The server at https://a.org/x redirects to https://b.org/y, which is not followed.",
            "The server redirects to another address, which is not followed.",
        ),
        ("It requires authorization (401).", "It requires authorization (401)."),
    ],
)
def test_callers_are_not_told_where_a_server_is(why, told):
    assert for_callers(why) == told
    unanswered = Unanswered(e.ServerUnreachable(why), begun=False, gone=True)
    for error in (unanswered, e.ServerUnreachable(why)):
        assert "https" not in given_up("demo", error, repeatable=True).message


def test_many_secrets_of_backends_do_not_let_the_first_be_forgotten():
    redactor = Redactor(["the-master-key"])
    for number in range(500):
        redactor.hide(f"secret-of-backend-{number}")
    assert "master" not in redactor.redact("it is the-master-key")
