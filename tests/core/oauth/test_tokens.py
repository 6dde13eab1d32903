"""Requests for tokens, PKCE, and which codes and tokens are good."""

from __future__ import annotations

import base64
from itertools import product
from urllib.parse import quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.limits import MAX_TOKEN_REQUEST_BYTES
from folkmoot.core.oauth.tokens import (
    ACCESS,
    CODE,
    DEVICE,
    FORM,
    REFRESH,
    check_grant,
    read,
    verified,
)
from tests.core.oauth.support import CHALLENGE, DESCRIPTION, VERIFIER

SECRET = "f" * 64
URN = "urn:ietf:params:oauth:grant-type"


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


def form(**members: str) -> bytes:
    return urlencode({"client_id": "app-1", "grant_type": "refresh_token", **members}).encode()


def test_a_request_is_a_form_and_shows_no_secret():
    body = form(refresh_token=f"rt_{SECRET}", scope="mail.read tools", unknown="x", resource="")
    for kind in (FORM, f"{FORM.upper()}; charset=UTF-8"):
        request = read(body, kind)
        assert request.client_id == "app-1"
        assert request.refresh_token == f"rt_{SECRET}"
        assert (request.scope, request.client_secret, request.resource) == (
            "mail.read tools",
            "",
            "",
        )
        assert SECRET not in repr(request)
        assert SECRET not in str([request])


@pytest.mark.parametrize(
    ("body", "header", "client_id", "secret"),
    [
        (form(), None, "app-1", ""),
        (form(), "Bearer at_1", "app-1", ""),
        (form(client_secret=SECRET), None, "app-1", SECRET),
        (form(), basic(f"app-1:{SECRET}"), "app-1", SECRET),
        (form(client_id="", client_secret=""), basic("app-1:a:b"), "app-1", "a:b"),
        (b"token=x", f"bAsIc  {basic(f'app-1:{SECRET}')[6:]}", "app-1", SECRET),
        (
            b"",
            basic(f"{quote_plus('https://a.b/c')}:{quote_plus('a b+')}"),
            "https://a.b/c",
            "a b+",
        ),
    ],
)
def test_an_app_names_itself_in_the_body_or_in_the_header(body, header, client_id, secret):
    request = read(body, FORM, header)
    assert (request.client_id, request.client_secret) == (client_id, secret)


TWICE = [form() + b"&code=1&code=2", form() + b"&client_id=app-1"]
UNREADABLE = [b"code=\xff", b"code=%ff", form(code="\0"), form(code="é")]
MANY = b"&".join(b"%d=1" % n for n in range(40))


@pytest.mark.parametrize(
    ("error", "bodies", "headers"),
    [
        ("invalid_request", [*TWICE, *UNREADABLE, MANY], [None]),
        ("invalid_request", [b""], [basic("app%00:x")]),
        ("invalid_request", [form(client_secret="x")], [basic("app-1:x")]),
        ("invalid_request", [form()], [basic("app-2:x")]),
        ("invalid_client", [b"", form(client_id="")], [None]),
        (
            "invalid_client",
            [form()],
            [basic("app-1"), "Basic x", "Basic é", "Basic ", basic("é:é")],
        ),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_code(error, bodies, headers):
    for body, header in product(bodies, headers):
        with pytest.raises(e.OAuthError) as refusal:
            read(body, FORM, header)
        status = 401 if error == "invalid_client" else 400
        assert (refusal.value.error, refusal.value.status) == (error, status), (body, header)


def test_only_a_form_of_a_few_kilobytes_is_read():
    with pytest.raises(e.OAuthError, match="must be of the type"):
        read(b"{}", "application/json")
    with pytest.raises(e.OAuthError) as refusal:
        read(b"a" * (MAX_TOKEN_REQUEST_BYTES + 1), FORM)
    assert refusal.value.status == 413


@pytest.mark.parametrize(
    ("error", "members"),
    [
        (None, {"code": "ac_1", "code_verifier": VERIFIER, "grant_type": "authorization_code"}),
        (None, {"refresh_token": "rt_1"}),
        (None, {"device_code": "dc_1", "grant_type": f"{URN}:device_code"}),
        ("invalid_request", {}),
        ("invalid_request", {"grant_type": "authorization_code", "code_verifier": VERIFIER}),
        ("invalid_request", {"grant_type": "authorization_code", "code": "ac_1"}),
        ("unsupported_grant_type", {"grant_type": ""}),
        ("unsupported_grant_type", {"grant_type": "client_credentials"}),
        ("unsupported_grant_type", {"grant_type": f"{URN}:jwt-bearer"}),
    ],
)
def test_each_grant_needs_its_members(error, members):
    request = read(form(**members), FORM)
    if error is None:
        check_grant(request)
        return
    with pytest.raises(e.OAuthError) as refusal:
        check_grant(request)
    assert refusal.value.error == error


@given(st.binary(max_size=60), st.none() | st.text(max_size=20).map("Basic {}".format))
def test_whatever_is_sent_is_read_or_refused(body, header):
    try:
        request = read(body, FORM, header)
    except e.OAuthError as refusal:
        words = refusal.message
    else:
        words = request.client_id
    assert DESCRIPTION.fullmatch(words)


@pytest.mark.parametrize(
    ("challenge", "verifier", "good"),
    [
        (CHALLENGE, VERIFIER, True),
        (CHALLENGE, VERIFIER[:-1] + "l", False),
        (CHALLENGE, "", False),
        (CHALLENGE, CHALLENGE, False),
        # `plain`, and verifiers that are too short, too long or of other letters.
        (VERIFIER, VERIFIER, False),
        ("ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0", "abc", False),
        (CHALLENGE, VERIFIER * 3, False),
        (CHALLENGE, VERIFIER + "\n", False),
        ("", VERIFIER, False),
        ("\ud800", VERIFIER, False),
    ],
)
def test_a_verifier_is_the_one_that_was_hashed(challenge, verifier, good):
    assert verified(challenge, verifier) is good


def test_tokens_and_codes_are_told_apart_by_their_form():
    forms = {"at_": ACCESS, "rt_": REFRESH, "ac_": CODE, "dc_": DEVICE}
    for start in forms:
        text = start + "0a1b2c3d" * 8
        assert [own for own, form in forms.items() if form.fullmatch(text)] == [start]
        assert not any(form.fullmatch(text[:-1]) for form in forms.values())
