"""Signing in at a server behind the hub: each step, and what a hostile server tries."""

from __future__ import annotations

import base64
import json
import re
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.limits import MAX_STEP_UPS, MAX_UPSTREAM_ANSWER_BYTES, MAX_UPSTREAM_TOKEN
from folkmoot.core.oauth.clients import imitates
from folkmoot.core.oauth.discovery import (
    Answer,
    AuthorizationServer,
    Challenge,
    OwnClient,
    Tokens,
    authorization_url,
    discover,
    discover_openid,
    exchange,
    exchange_id,
    read_challenge,
    read_code,
    refresh,
    register,
    revoke,
    scope_for,
    step_up,
)
from tests.core.oauth.support import CHALLENGE, VERIFIER

URL = "https://notes.example/public/mcp"
ISSUER = "https://auth.example/tenant"
KNOWN = "https://notes.example/.well-known/oauth-protected-resource"
BACK = "https://hub.example/oauth/callback"
RESOURCE = {"resource": URL, "authorization_servers": [ISSUER], "scopes_supported": ["read"]}
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "registration_endpoint": f"{ISSUER}/register",
    "code_challenge_methods_supported": ["plain", "S256"],
}
PLACES = (
    "https://auth.example/.well-known/oauth-authorization-server/tenant",
    "https://auth.example/.well-known/openid-configuration/tenant",
    "https://auth.example/tenant/.well-known/openid-configuration",
)
SERVER = AuthorizationServer(
    ISSUER, URL, f"{ISSUER}/authorize", f"{ISSUER}/token", f"{ISSUER}/register"
)
CLIENT = OwnClient("us", "s:cret", "client_secret_basic")
TOKENS = {"access_token": "abc", "token_type": "bearer"}


def run(steps, found):
    """What comes of the steps where these answers are found, and what was asked, in order."""
    asked, answer = [], None
    try:
        while True:
            request = steps.send(answer)
            asked.append(request)
            body = found.get(request.url, 404)
            status, body = body if isinstance(body, tuple) else (200, body)
            if isinstance(body, int):
                status, body = body, b""
            answer = Answer(status, body if isinstance(body, bytes) else json.dumps(body).encode())
    except StopIteration as stop:
        return stop.value, asked


def refused(steps, found):
    """The refusal, and what was asked before."""
    asked = []

    def noting():
        answer = None
        while True:
            try:
                request = steps.send(answer)
            except StopIteration as stop:
                return stop.value
            asked.append(request.url)
            answer = yield request

    with pytest.raises(e.SignInRefused) as caught:
        run(noting(), found)
    return caught.value, asked


@pytest.mark.parametrize(
    ("values", "read"),
    [
        ([], Challenge()),
        (["Bearer"], Challenge()),
        (
            [f'Bearer resource_metadata="{KNOWN}", scope="a b", error="invalid_token"'],
            Challenge(KNOWN, "a b", "invalid_token"),
        ),
        (["bearer Scope=a,error = insufficient_scope"], Challenge("", "a", "insufficient_scope")),
        (['Basic realm="x", scope="no", Bearer scope="yes"'], Challenge(scope="yes")),
        (['Bearer scope="yes", DPoP scope="no"', "Bearer scope=late"], Challenge(scope="yes")),
        (["Negotiate YWJj==", 'Bearer realm="a \\"scope=b\\"", scope="c"'], Challenge(scope="c")),
        (['Bearer scope="unclosed'], Challenge()),
        (["Bearer " + "x" * 5000 + ' scope="late"'], Challenge()),
    ],
)
def test_a_challenge_is_read(values, read):
    assert read_challenge(values) == read


@given(st.lists(st.text(), max_size=3))
def test_any_challenge_is_read(values):
    read_challenge(values)


def test_metadata_are_found_where_the_challenge_says():
    place = "https://notes.example/elsewhere.json"
    found = {place: RESOURCE, PLACES[0]: METADATA}
    server, asked = run(discover(URL, Challenge(place)), found)
    assert [request.url for request in asked] == [place, PLACES[0]]
    assert server == AuthorizationServer(
        ISSUER, URL, f"{ISSUER}/authorize", f"{ISSUER}/token", f"{ISSUER}/register", scope="read"
    )


def test_metadata_are_looked_for_in_the_order_of_the_specification():
    more = {
        "scopes_supported": ["offline_access"],
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
        "token_endpoint_auth_methods_supported": ["none"],
    }
    found = {KNOWN: {**RESOURCE, "resource": "https://notes.example:443"}}
    found[PLACES[2]] = {**METADATA, **more}
    server, asked = run(discover(URL, Challenge()), found)
    places = [f"{KNOWN}/public/mcp", KNOWN, *PLACES]
    assert [request.url for request in asked] == places
    assert {request.method for request in asked} == {"GET"}
    assert server.documents
    assert server.names_itself
    assert server.offline
    assert server.auth_methods == ("none",)
    assert server.resource == "https://notes.example:443"


def test_a_server_at_the_root_is_asked_once():
    issuer = "https://auth.example"
    places = [
        f"{issuer}/.well-known/{name}"
        for name in ("oauth-authorization-server", "openid-configuration")
    ]
    resource = {"resource": "https://notes.example/", "authorization_servers": [issuer]}
    found = {
        KNOWN: resource,
        places[1]: {**METADATA, "issuer": issuer, "registration_endpoint": None},
    }
    server, asked = run(discover("https://notes.example", Challenge()), found)
    assert [request.url for request in asked] == [KNOWN, *places]
    assert (server.scope, server.registration_endpoint) == ("", "")


@pytest.mark.parametrize("issuer", ["https://notes.example", "https://notes.example/"])
def test_a_server_without_metadata_is_its_own_authorization_server(issuer):
    place = "https://notes.example/.well-known/oauth-authorization-server"
    found = {place: {**METADATA, "issuer": issuer}}
    server, _ = run(discover(f"{URL}?tools=search", Challenge()), found)
    assert (server.issuer, server.resource) == (issuer, URL)


def test_a_trusted_issuer_is_chosen():
    both = {**RESOURCE, "authorization_servers": ["https://other.example", ISSUER]}
    found = {KNOWN: both, PLACES[0]: METADATA}
    server, _ = run(discover(URL, Challenge(), {ISSUER}), found)
    assert server.issuer == ISSUER
    for trusted in ({"https://third.example"}, {f"{ISSUER}/"}):
        _, asked = refused(discover(URL, Challenge(), trusted), found)
        assert asked[-1] == KNOWN
    _, asked = refused(discover(URL, Challenge(), {ISSUER}), {})
    assert asked[-1] == KNOWN


@pytest.mark.parametrize(
    "issuer",
    [
        "https://honest.example",
        f"{ISSUER}/",
        "https://AUTH.example/tenant",
        "https://auth.example:443/tenant",
        "https://auth.example/%74enant",
    ],
)
@pytest.mark.parametrize("place", PLACES)
def test_the_metadata_of_another_issuer_are_refused(issuer, place):
    found = {KNOWN: RESOURCE, place: {**METADATA, "issuer": issuer}}
    error, _ = refused(discover(URL, Challenge()), found)
    assert "another authorization server" in error.message


@pytest.mark.parametrize(
    "place",
    [
        "https://rogue.example/.well-known/oauth-protected-resource",
        "https://notes.example.rogue.example/x",
        "https://notes.example:8443/x",
        "http://notes.example/x",
        "http://127.0.0.1/x",
        "https://notes.example@rogue.example/x",
        "https://notes.example\\.rogue.example/x",
        "file:///etc/passwd",
        "x",
        f"https://notes.example/{'x' * 2000}",
    ],
)
def test_a_rogue_resource_metadata_is_not_even_asked_for(place):
    _, asked = refused(discover(URL, Challenge(place)), {place: RESOURCE, PLACES[0]: METADATA})
    assert asked == []


@pytest.mark.parametrize(
    "resource",
    [
        "https://bank.example/mcp",
        "https://notes.example/public/mcp/more",
        "https://notes.example/pub",
        "https://notes.example:8443/public/mcp",
        "http://notes.example/public/mcp",
        "urn:notes",
        "notes",
        f"https://notes.example/{'x' * 2000}",
    ],
)
def test_a_server_that_names_another_resource_is_refused(resource):
    found = {KNOWN: {**RESOURCE, "resource": resource}, PLACES[0]: METADATA}
    _, asked = refused(discover(URL, Challenge()), found)
    assert asked[-1] == KNOWN


@pytest.mark.parametrize(
    "member", ["authorization_endpoint", "token_endpoint", "registration_endpoint"]
)
@pytest.mark.parametrize(
    "url", ["http://auth.example/x", "http://localhost/x", "javascript:x", "https:/x", ""]
)
def test_an_endpoint_that_is_not_https_is_refused(member, url):
    found = {KNOWN: RESOURCE, PLACES[0]: {**METADATA, member: url}}
    error, _ = refused(discover(URL, Challenge()), found)
    assert "https" in error.message


def test_plain_http_is_for_servers_on_this_machine():
    base = "http://127.0.0.1:9000"
    metadata = {name: str(value).replace(ISSUER, base) for name, value in METADATA.items()}
    metadata["code_challenge_methods_supported"] = ["S256"]
    found = {
        f"{base}/.well-known/oauth-protected-resource/mcp": {
            "resource": f"{base}/mcp",
            "authorization_servers": [base],
        },
        f"{base}/.well-known/oauth-authorization-server": metadata,
    }
    assert run(discover(f"{base}/mcp", Challenge()), found)[0].issuer == base
    for url in ("http://10.0.0.1/mcp", "http://notes.example/mcp", "not a url"):
        assert refused(discover(url, Challenge()), found)[1] == []


@pytest.mark.parametrize(
    ("place", "answer"),
    [
        (KNOWN, b"[]"),
        (KNOWN, b"{"),
        (KNOWN, {"resource": URL}),
        (KNOWN, {**RESOURCE, "authorization_servers": []}),
        (KNOWN, {**RESOURCE, "authorization_servers": ["http://auth.example"]}),
        (KNOWN, {**RESOURCE, "more": "x" * MAX_UPSTREAM_ANSWER_BYTES}),
        (PLACES[0], {**METADATA, "token_endpoint": None}),
        (PLACES[0], {**METADATA, "code_challenge_methods_supported": ["plain"]}),
        (PLACES[0], {**METADATA, "code_challenge_methods_supported": None}),
        # Nothing follows a redirect.
        (PLACES[0], (302, METADATA)),
    ],
)
def test_metadata_that_are_not_in_order_are_refused(place, answer):
    refused(discover(URL, Challenge()), {KNOWN: RESOURCE, PLACES[0]: METADATA, place: answer})


@pytest.mark.parametrize(
    ("methods", "given", "answer", "client"),
    [
        (("client_secret_basic", "none"), {"own_id": "us"}, None, OwnClient("us")),
        (("none",), {"own_id": "us", "own_secret": "s"}, None, OwnClient("us", "s")),
        (
            ("client_secret_post",),
            {"own_id": "us", "own_secret": "s", "document": "https://hub.example/c"},
            None,
            OwnClient("us", "s", "client_secret_post"),
        ),
        ((), {"document": "https://hub.example/c"}, None, OwnClient("https://hub.example/c")),
        (
            ("none", "client_secret_post", "client_secret_basic"),
            {},
            {"client_id": "i", "client_secret": "s", "client_secret_expires_at": 9.5},
            OwnClient("i", "s", "client_secret_post", 9),
        ),
        (
            ("client_secret_basic",),
            {},
            {
                "client_id": "i",
                "client_secret": "s",
                "token_endpoint_auth_method": "client_secret_post",
            },
            OwnClient("i", "s", "client_secret_post"),
        ),
        (("none",), {}, {"client_id": "i", "client_secret": None}, OwnClient("i")),
    ],
)
def test_the_hub_is_known_as_agreed_by_its_document_or_by_registering(
    methods, given, answer, client
):
    server = AuthorizationServer(
        *(ISSUER, URL, "", "", f"{ISSUER}/register"),
        auth_methods=methods,
        documents="document" in given,
    )
    found, asked = run(register(server, BACK, **given), {f"{ISSUER}/register": (201, answer)})
    assert found == client
    assert len(asked) == (answer is not None)
    if asked:
        sent = json.loads(asked[0].body)
        assert sent["redirect_uris"] == [BACK]
        assert sent["application_type"] == "web"
        # A hub behind a hub is taken, too.
        assert not imitates(sent["client_name"])
        assert sent["token_endpoint_auth_method"] in methods


def test_another_program_registers_under_its_own_name_and_without_a_secret():
    asked = json.loads(next(register(SERVER, BACK, name="Doctor", is_public=True)).body)
    assert (asked["client_name"], asked["token_endpoint_auth_method"]) == ("Doctor", "none")


def test_a_hub_on_this_machine_registers_as_a_native_app():
    steps = register(SERVER, "http://localhost:8000/oauth/callback", document="https://not.asked")
    assert json.loads(next(steps).body)["application_type"] == "native"


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (400, {"error": "invalid_redirect_uri"}, "invalid_redirect_uri"),
        (400, {"error": "Look <here>"}, "does not register us."),
        (403, b"no", "does not register us."),
        (302, {"client_id": "i"}, "does not register us."),
        (201, {}, "cannot be read"),
        (201, {"client_id": ""}, "id"),
        (201, {"client_id": "a\nb"}, "id"),
        (201, {"client_id": "i" * 3000}, "id"),
        (201, {"client_id": "i", "client_secret": "s" * 3000}, "id"),
        (
            201,
            {"client_id": "i", "client_secret": "s", "token_endpoint_auth_method": "tls"},
            "'tls'",
        ),
    ],
)
def test_a_registration_that_fails_says_why(status, answer, words):
    error, _ = refused(register(SERVER, BACK), {f"{ISSUER}/register": (status, answer)})
    assert words in error.message


def test_a_server_that_registers_nobody_says_what_to_set():
    none = AuthorizationServer(ISSUER, URL, "", "")
    assert "client_id" in refused(register(none, BACK), {})[0].message
    odd = AuthorizationServer(ISSUER, URL, "", "", f"{ISSUER}/r", auth_methods=("private_key_jwt",))
    assert refused(register(odd, BACK), {})[1] == []


@pytest.mark.parametrize(
    ("wanted", "challenged", "supported", "offline", "asked"),
    [
        ("", "", "", False, ""),
        ("", "", "", True, ""),
        ("", "", "read", False, "read"),
        ("", "write write", "read", False, "write"),
        ("own", "write", "read", True, "own offline_access"),
        ("", 'a "b" c\\d é', "", False, "a"),
    ],
)
def test_the_scope_is_what_is_set_or_challenged_or_said(
    wanted, challenged, supported, offline, asked
):
    server = AuthorizationServer(ISSUER, URL, "", "", scope=supported, offline=offline)
    assert scope_for(server, Challenge(scope=challenged), wanted) == asked


def test_more_scope_is_asked_for_beside_what_was_asked_for():
    more = Challenge(scope="write read", error="insufficient_scope")
    assert step_up("read", more, 0) == "read write"


@pytest.mark.parametrize(
    ("challenge", "times"),
    [
        (Challenge(scope="read", error="insufficient_scope"), 0),
        (Challenge(error="insufficient_scope"), 0),
        (Challenge(scope="write", error="invalid_token"), 0),
        (Challenge(scope="write", error="insufficient_scope"), MAX_STEP_UPS),
    ],
)
def test_an_endless_step_up_ends(challenge, times):
    with pytest.raises(e.SignInRefused) as caught:
        step_up("read", challenge, times)
    assert caught.value.error == "insufficient_scope"


@pytest.mark.parametrize("query", ["", "?p=tenant"])
def test_a_person_is_sent_with_pkce_and_the_resource(query):
    server = AuthorizationServer(ISSUER, URL, f"{ISSUER}/authorize{query}", f"{ISSUER}/token")
    names = {"redirect_uri": BACK, "state": "st", "verifier": VERIFIER}
    url = authorization_url(server, CLIENT, scope="read offline_access", **names)
    assert url.startswith(f"{ISSUER}/authorize{query or '?'}")
    assert VERIFIER not in url
    assert "s:cret" not in url
    asked = parse_qs(urlsplit(url).query)
    asked.pop("p", None)
    assert asked == {
        "response_type": ["code"],
        "client_id": ["us"],
        "redirect_uri": [BACK],
        "state": ["st"],
        "code_challenge": [CHALLENGE],
        "code_challenge_method": ["S256"],
        "resource": [URL],
        "scope": ["read offline_access"],
        "prompt": ["consent"],
    }
    assert "prompt=" not in authorization_url(server, CLIENT, scope="", **names)


def code_of(query, *, names_itself=True):
    pairs = parse_qsl(query, keep_blank_values=True)
    return read_code(pairs, issuer=ISSUER, names_itself=names_itself, state="st")


def test_a_person_comes_back_with_a_code():
    iss = "iss=https%3A%2F%2Fauth.example%2Ftenant"
    assert code_of(f"code=c&state=st&{iss}") == "c"
    assert code_of(f"code=c&state=st&{iss}", names_itself=False) == "c"
    assert code_of("code=c&state=st", names_itself=False) == "c"


@pytest.mark.parametrize(
    "rest", ["code=c", "error=access_denied&error_description=Call+this+number"]
)
@pytest.mark.parametrize("names_itself", [True, False])
@pytest.mark.parametrize(
    "iss",
    [
        None,
        "",
        "https://rogue.example",
        f"{ISSUER}/",
        "https://AUTH.example/tenant",
        "https://auth.example:443/tenant",
        "https://auth.example/%74enant",
    ],
)
def test_an_answer_whose_iss_is_missing_wrong_or_normalised_is_refused(iss, names_itself, rest):
    if iss is None and not names_itself:
        return
    query = f"{rest}&state=st" + ("" if iss is None else f"&iss={iss.replace('%', '%25')}")
    with pytest.raises(e.SignInRefused) as caught:
        code_of(query, names_itself=names_itself)
    assert caught.value.message == "The answer is not from the server that you were sent to."
    assert caught.value.error == ""


@pytest.mark.parametrize(
    ("query", "words", "error"),
    [
        ("code=c", "does not belong", ""),
        ("code=c&state=other", "does not belong", ""),
        ("code=c&state=%ED%A0%80", "does not belong", ""),
        ("state=st&code=c&code=d", "not in order", ""),
        (f"state=st&code={'c' * 3000}", "not in order", ""),
        ("state=st", "no code", ""),
        # A token in a redirect is not taken for a code.
        ("state=st&access_token=abc&token_type=bearer", "no code", ""),
        ("state=st&error=access_denied", "did not consent", "access_denied"),
        ("state=st&error=server_error", "server_error", "server_error"),
        ("state=st&error=Call+us", "refuses: error.", "error"),
    ],
)
def test_an_answer_without_a_code_of_this_sign_in_is_refused(query, words, error):
    with pytest.raises(e.SignInRefused) as caught:
        code_of(query, names_itself=False)
    assert words in caught.value.message
    assert caught.value.error == error


@pytest.mark.parametrize("auth", ["none", "client_secret_post", "client_secret_basic"])
def test_a_code_is_exchanged(auth):
    client = OwnClient("us/1", "s:c&ret", auth)
    steps = exchange(SERVER, client, code="c", redirect_uri=BACK, verifier=VERIFIER)
    answer = {
        **TOKENS,
        "token_type": "Bearer",
        "refresh_token": "r",
        "expires_in": 60,
        "scope": "a",
    }
    tokens, (request,) = run(steps, {f"{ISSUER}/token": answer})
    assert tokens == Tokens("abc", "r", "a", 60)
    form = dict(parse_qsl(request.body.decode()))
    shown = (form.pop("client_id", None), form.pop("client_secret", None))
    assert form == {
        "grant_type": "authorization_code",
        "code": "c",
        "redirect_uri": BACK,
        "code_verifier": VERIFIER,
        "resource": URL,
    }
    basic = "Basic " + base64.b64encode(b"us%2F1:s%3Ac%26ret").decode()
    expected = {
        "none": (("us/1", None), None),
        "client_secret_post": (("us/1", "s:c&ret"), None),
        "client_secret_basic": (("us/1", None), basic),
    }
    assert (shown, dict(request.headers).get("authorization")) == expected[auth]
    # Where an object is in memory can look like anything.
    written = re.sub("0x[0-9a-f]+", "", f"{request!r}{tokens!r}{client!r}{Answer(200, b'abc')!r}")
    for secret in ("abc", "s:c", VERIFIER, "Basic"):
        assert secret not in written


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        (TOKENS, Tokens("abc", "old", "a")),
        ({**TOKENS, "refresh_token": "new", "scope": "b"}, Tokens("abc", "new", "b")),
        ({**TOKENS, "expires_in": "3600"}, Tokens("abc", "old", "a", 3600)),
        ({**TOKENS, "expires_in": -5}, Tokens("abc", "old", "a")),
        ({**TOKENS, "expires_in": "soon"}, Tokens("abc", "old", "a")),
        ({**TOKENS, "expires_in": 1e15}, Tokens("abc", "old", "a", 315_360_000)),
    ],
)
def test_tokens_are_refreshed(answer, tokens):
    steps = refresh(SERVER, CLIENT, Tokens("gone", "old", "a", 5))
    found, (request,) = run(steps, {f"{ISSUER}/token": answer})
    assert found == tokens
    form = dict(parse_qsl(request.body.decode()))
    named = {"client_id": "us", "resource": URL}
    assert form == {"grant_type": "refresh_token", "refresh_token": "old", **named}


@pytest.mark.parametrize(
    ("held", "revoked"), [(Tokens("a"), ["a"]), (Tokens("a", "r"), ["r", "a"])]
)
def test_tokens_are_revoked_where_the_server_can(held, revoked):
    where = f"{ISSUER}/revoke"
    found = {KNOWN: RESOURCE, PLACES[0]: {**METADATA, "revocation_endpoint": where}}
    server = run(discover(URL, Challenge()), found)[0]
    # Whatever it answers.
    asked = run(revoke(server, CLIENT, held), {where: (500, b"no")})[1]
    assert [dict(parse_qsl(each.body.decode()))["token"] for each in asked] == revoked
    assert run(revoke(SERVER, CLIENT, held), {})[1] == []


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (400, {"error": "invalid_grant", "error_description": "Call abc"}, "invalid_grant"),
        (401, {"error": "invalid_client"}, "invalid_client"),
        (400, {"error": ["abc"]}, ""),
        # Tokens in a redirect are not taken, and the redirect is not followed.
        (302, TOKENS, ""),
        (500, b"abc", ""),
        (200, {**TOKENS, "token_type": "mac"}, ""),
        (200, {"access_token": "abc"}, ""),
        (200, {**TOKENS, "access_token": "abc\r\nx: y"}, ""),
        (200, {**TOKENS, "access_token": ""}, ""),
        (200, {**TOKENS, "access_token": "a" * (MAX_UPSTREAM_TOKEN + 1)}, ""),
        (200, {**TOKENS, "refresh_token": "a b"}, ""),
        (200, {**TOKENS, "expires_in": ["abc"]}, ""),
    ],
)
def test_an_answer_without_good_tokens_is_refused_and_not_repeated(status, answer, error):
    steps = refresh(SERVER, CLIENT, Tokens("gone", "old"))
    found, asked = refused(steps, {f"{ISSUER}/token": (status, answer)})
    assert found.error == error
    assert "abc" not in found.message
    assert asked == [f"{ISSUER}/token"]


def test_who_has_to_consent_is_told_where_and_nothing_was_sent():
    needed = e.ConsentNeeded("notes", "write")
    assert needed.as_http()["error"]["namespace"] == "notes"
    assert (needed.scope, needed.unsent) == ("write", True)


OPENID = {**METADATA, "jwks_uri": f"{ISSUER}/keys"}
OPENID_PLACE = PLACES[2]


def test_the_provider_of_a_company_is_found_at_its_issuer():
    # Some providers do not say that they support PKCE.
    found = {name: OPENID[name] for name in OPENID if not name.startswith("code")}
    provider, (request,) = run(discover_openid(ISSUER), {OPENID_PLACE: found})
    assert (request.url, provider.jwks_uri) == (OPENID_PLACE, f"{ISSUER}/keys")
    assert (provider.server.issuer, provider.server.resource) == (ISSUER, "")
    names = {"redirect_uri": BACK, "state": "st", "verifier": VERIFIER, "nonce": "no"}
    url = authorization_url(provider.server, CLIENT, scope="openid", **names)
    asked = parse_qs(urlsplit(url).query)
    assert asked["nonce"] == ["no"]
    assert "resource" not in asked


@pytest.mark.parametrize(
    "answer",
    [
        404,
        b"no",
        METADATA,
        {**OPENID, "issuer": f"{ISSUER}/"},
        {**OPENID, "jwks_uri": "http://auth.example/keys"},
        {**OPENID, "token_endpoint": "http://auth.example/token"},
    ],
)
def test_a_provider_that_is_another_or_not_in_order_is_refused(answer):
    assert refused(discover_openid(ISSUER), {OPENID_PLACE: answer})[1] == [OPENID_PLACE]


def test_an_issuer_without_tls_is_on_this_machine():
    assert refused(discover_openid("http://auth.example"), {})[1] == []


def test_a_code_is_exchanged_for_an_id_token():
    server = AuthorizationServer(ISSUER, "", f"{ISSUER}/authorize", f"{ISSUER}/token")
    names = {"code": "c", "redirect_uri": BACK, "verifier": VERIFIER}
    place = f"{ISSUER}/token"
    found, (request,) = run(exchange_id(server, CLIENT, **names), {place: {"id_token": "a.b.c"}})
    assert found == "a.b.c"
    assert "resource" not in dict(parse_qsl(request.body.decode()))
    for answer in (TOKENS, {"id_token": "a b"}, {"id_token": ""}, (400, {"id_token": "a.b.c"})):
        refused(exchange_id(server, CLIENT, **names), {place: answer})
