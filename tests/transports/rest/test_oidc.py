"""Signing in with a company's accounts: who gets in, and what a provider or a stranger tries."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey

from folkmoot.accounts.limits import OIDC_FAILURE_SECONDS
from folkmoot.gateway.rights import HubRights
from folkmoot.settings import GatewaySpec
from tests.conftest import settings_of
from tests.mcp.client.places import Asked, Place
from tests.transports.rest.support import House, house
from tests.transports.rest.test_sessions import ME, SESSION, TOKENS, Browser

PATH = "/sign-in/oidc"
SECRET = "a secret of the hub that is long enough"
PEER = {"groups_claim": "groups", "operators": ["Admins"], "name": "Example Inc."}


class Provider:
    """A company's provider, which tells the truth unless told otherwise."""

    def __init__(self, clock) -> None:
        self.place, self.clock = Place(self._do), clock
        self.key, self.other = (ECKey.generate_key(parameters={"kid": "one"}) for _ in range(2))
        self.person: dict[str, Any] = {"sub": "42", "preferred_username": "Ada.Byron@example.org"}
        self.metadata: dict[str, Any] = {"authorization_response_iss_parameter_supported": True}
        self.id_token = self.signed
        self.codes: dict[str, dict[str, str]] = {}
        self.said: list[str] = []
        self.is_down, self.asked = False, 0

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.place.port}/staff"

    def signed(self, claims: dict[str, Any], key: Any = None, alg: str = "ES256", **more) -> str:
        header = {"alg": alg, "kid": "one", **more}
        return jwt.encode(header, claims, key or self.key, algorithms=[alg])

    def visit(self, url: str, **answer: str | None) -> str:
        """Somebody signs in at a link: where the browser is sent back to."""
        asked = dict(parse_qsl(urlsplit(url).query))
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        given = {"code": code, "state": asked["state"], "iss": self.issuer, **answer}
        return f"{PATH}?{urlencode({name: v for name, v in given.items() if v is not None})}"

    async def _do(self, asked: Asked) -> None:
        self.asked += 1
        if self.is_down:
            asked.hang_up()
        elif asked.path == "/staff/.well-known/openid-configuration":
            names = {"authorization_endpoint": "a", "token_endpoint": "token", "jwks_uri": "keys"}
            places = {name: f"{self.issuer}/{path}" for name, path in names.items()}
            await asked.say_json({"issuer": self.issuer, **places, **self.metadata})
        elif asked.path == "/staff/keys":
            await asked.say_json({"keys": [self.key.as_dict(private=False)]})
        else:
            form = dict(parse_qsl(asked.body.decode()))
            begun = self.codes.pop(form["code"])
            digest = base64.urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest())
            assert begun["code_challenge"] == digest.decode().rstrip("=")
            assert form["redirect_uri"] == begun["redirect_uri"]
            secret = base64.b64decode(asked.headers["authorization"].removeprefix("Basic "))
            assert secret.decode() == f"hub:{quote(SECRET)}"
            now = int(self.clock.now())
            times = {"iat": now, "exp": now + 300}
            named = {"iss": self.issuer, "aud": "hub", "nonce": begun["nonce"]}
            self.said.append(self.id_token({**times, **named, **self.person}))
            tokens = {"access_token": "at-provider", "token_type": "Bearer"}
            await asked.say_json({**tokens, "id_token": self.said[-1]})


@pytest.fixture
async def provider(clock) -> AsyncIterator[Provider]:
    there = Provider(clock)
    async with there.place.open():
        yield there


@pytest.fixture
async def hub(tmp_path, clock, provider, request) -> AsyncIterator[House]:
    given = {"client_id": "hub", "client_secret": SECRET, "issuer": provider.issuer}
    values = settings_of(request)
    oidc = {**given, **PEER, **values.pop("oidc", {})}
    async with house(tmp_path, clock, sign_in={"oidc": oidc}, **values) as there:
        yield there


async def begin(browser, then="") -> str:
    """Where a browser is sent."""
    query = f"?{urlencode({'next': then})}" if then else ""
    answer = await browser.ask("GET", f"{PATH}{query}")
    assert answer.status == 302, answer.text
    return answer.headers["location"]


async def back(browser, path):
    """A browser comes back, from another site."""
    return await browser.ask("GET", path, sec_fetch_site="cross-site", accept="text/html")


async def enter(hub, provider, **answer):
    """Somebody signs in in a browser of their own; it, and the last answer."""
    browser = Browser(hub.port)
    return browser, await back(browser, provider.visit(await begin(browser), **answer))


async def refused(hub, provider, words="", status=403, **answer):
    _, said = await enter(hub, provider, **answer)
    assert (said.status, words in said.text) == (status, True), said.text
    assert said.headers["content-type"].startswith("text/html")
    assert "set-cookie" not in said.headers
    assert (await Browser(hub.port).get(SESSION))["handle"] is None


async def test_somebody_of_the_company_signs_in_and_stays_the_same_person(hub, provider, log):
    browser = Browser(hub.port)
    url = await begin(browser, "/authorize?client_id=x&state=y")
    asked = dict(parse_qsl(urlsplit(url).query))
    assert url.startswith(f"{provider.issuer}/a?")
    assert (asked["scope"], asked["redirect_uri"]) == (
        "openid profile",
        f"{browser.origin}{PATH}",
    )
    assert "resource" not in asked
    answer = await back(browser, provider.visit(url))
    onward = "/sign-in?next=%2Fauthorize%3Fclient_id%3Dx%26state%3Dy"
    assert (answer.status, answer.headers["location"]) == (302, onward)
    assert "SameSite=Strict" in answer.headers["set-cookie"]
    here = await browser.get(SESSION)
    assert (here["handle"], here["scope"], here["company"]) == ("ada_byron", "*", "Example Inc.")
    # Nothing else opens the account: nobody was told a token.
    assert [each["kind"] for each in (await browser.get(TOKENS))["tokens"]] == ["browser"]
    provider.person["preferred_username"] = "ada.lovelace"
    again, answer = await enter(hub, provider)
    assert answer.headers["location"] == "/sign-in"
    assert (await again.get(SESSION))["handle"] == "ada_byron"
    text = log.getvalue()
    assert "browser.signed_in" in text
    for secret in (SECRET, asked["state"], asked["nonce"], "code-0", *provider.said, "bs_"):
        assert secret not in text


FORGED = {
    "none": lambda there, claims: unsigned(claims),
    "our_secret": lambda there, claims: there.signed(claims, OctKey.import_key(SECRET), "HS256"),
    "their_public_key_as_a_secret": lambda there, claims: there.signed(
        claims, OctKey.import_key(base64.b64encode(there.key.as_pem(private=False))), "HS256"
    ),
    "cut_signature": lambda there, claims: there.signed(claims)[:-8],
    "no_signature": lambda there, claims: there.signed(claims).rpartition(".")[0] + ".",
    "another_key": lambda there, claims: there.signed(claims, there.other),
    "a_key_of_its_own": lambda there, claims: there.signed(
        claims, there.other, jwk=there.other.as_dict(private=False)
    ),
    "other_nonce": lambda there, claims: there.signed({**claims, "nonce": "n" * 43}),
    "no_nonce": lambda there, claims: there.signed(without(claims, "nonce")),
    "late": lambda there, claims: there.signed({**claims, "exp": claims["iat"] - 61}),
    "endless": lambda there, claims: there.signed(without(claims, "exp")),
    "from_the_future": lambda there, claims: there.signed({**claims, "iat": claims["exp"]}),
    "other_audience": lambda there, claims: there.signed({**claims, "aud": "mail"}),
    "other_party": lambda there, claims: there.signed({**claims, "azp": "mail"}),
    "two_audiences": lambda there, claims: there.signed({**claims, "aud": ["mail", "hub"]}),
    "other_issuer": lambda there, claims: there.signed({**claims, "iss": f"{claims['iss']}/"}),
    "nobody": lambda there, claims: there.signed(without(claims, "sub")),
    "empty_subject": lambda there, claims: there.signed({**claims, "sub": ""}),
    "long_subject": lambda there, claims: there.signed({**claims, "sub": "s" * 256}),
    "subjects": lambda there, claims: there.signed({**claims, "sub": ["42"]}),
    "no_token": lambda there, claims: "a.b.c",
}


def without(claims, name):
    return {each: value for each, value in claims.items() if each != name}


def unsigned(claims):
    parts = (json.dumps(each).encode() for each in ({"alg": "none", "kid": "one"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


@pytest.mark.requirement("sign-in.company")
async def test_an_id_token_that_is_forged_or_for_something_else_opens_nothing(hub, provider):
    for name, forge in FORGED.items():
        provider.id_token = lambda claims, forge=forge: forge(provider, claims)
        try:
            await refused(hub, provider, "does not show who you are")
        except AssertionError as error:
            raise AssertionError(name) from error
    provider.id_token = lambda claims: provider.signed(
        {**claims, "aud": ["mail", "hub"], "azp": "hub"}
    )
    assert (await enter(hub, provider))[1].status == 302


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"iss": "https://evil.example"}, "not from the server"),
        ({"iss": None}, "not from the server"),
        ({"state": "s" * 43}, "Start again"),
        ({"state": None}, "Start again"),
        ({"code": None, "error": "access_denied"}, "You did not consent"),
        ({"code": None, "error": "<script>"}, "refuses: error."),
        ({f"x{each}": "" for each in range(40)}, "cannot be read"),
    ],
)
async def test_an_answer_of_another_issuer_or_to_another_question_is_refused(
    hub, provider, answer, words
):
    await refused(hub, provider, words, **answer)


async def test_a_sign_in_ends_in_the_browser_that_began_it_once_and_in_time(hub, provider, clock):
    mallory, victim = Browser(hub.port), Browser(hub.port)
    answer = provider.visit(await begin(mallory))
    await begin(victim)
    for other in (victim, Browser(hub.port), Browser(hub.port, "127.0.0.1")):
        said = await back(other, answer)
        assert (said.status, "Start again." in said.text) == (403, True)
    ticket = mallory.cookie
    assert (await back(mallory, answer)).status == 302
    mallory.cookie = ticket
    assert "Start again." in (await back(mallory, answer)).text
    slow = Browser(hub.port)
    url = await begin(slow)
    clock.advance(601)
    assert (await back(slow, provider.visit(url))).status == 403


@pytest.mark.parametrize(
    "then",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "javascript:alert(1)",
        "inbox",
        "/\u00e9",
        "/" + "x" * 2401,
    ],
)
async def test_the_way_back_leads_to_no_other_site(hub, provider, then):
    browser = Browser(hub.port)
    answer = await back(browser, provider.visit(await begin(browser, then)))
    assert (answer.status, answer.headers["location"]) == (302, "/sign-in")


async def test_a_handle_of_another_account_is_never_taken_over(hub, provider):
    for handle, name in (("ada_byron", "ada-byron"), ("support", "support"), ("backend", "admin")):
        if handle == "ada_byron":
            await hub.person(handle)
        provider.person["preferred_username"] = name
        await refused(hub, provider, "belongs to another account", 409)
    for name in ("x", "9lives", "ádá", None, ["ada"], "a" * 21):
        provider.person["preferred_username"] = name
        await refused(hub, provider, "no name that can be a handle")
    assert await hub.hub.accounts.count() == 1


@pytest.mark.settings(oidc={"register": False})
async def test_only_those_who_are_known_sign_in_where_nobody_is_registered(hub, provider):
    await refused(hub, provider, "belongs to nobody here")


@pytest.mark.settings(registration="closed")
async def test_a_suspended_or_deleted_person_is_not_signed_in(hub, provider):
    browser, _ = await enter(hub, provider)
    accounts = hub.hub.accounts
    account = await accounts.named("ada_byron")
    await accounts.suspend(account, suspended=True)
    await refused(hub, provider, "suspended", 401)
    await accounts.suspend(account, suspended=False)
    belongings = await accounts.belongings(account.id)
    [known] = belongings.company_accounts
    assert (known.issuer, known.subject) == (provider.issuer, "42")
    await accounts.delete(account)
    assert await hub.hub.store.read(lambda tx: tx.fetch("SELECT * FROM identities")) == []
    assert (await browser.ask("GET", ME)).status == 401
    await refused(hub, provider, "belongs to another account", 409)


async def test_a_groups_people_have_its_rights_and_operators_run_the_hub(hub, provider):
    rights = hub.hub.behind.rights
    grants = {"@crew": ("!mcp.request.tools/call:msg/send",)}
    spec = GatewaySpec(groups={"crew": ()}, grants=grants)
    await rights.configure(spec)
    for groups, member, scope in (
        (["Crew", "others", 7], {"crew"}, "*"),
        ("admins", set(), "* operate"),
        (None, set(), "*"),
    ):
        provider.person["groups"] = groups
        browser, _ = await enter(hub, provider)
        assert (await browser.get(SESSION))["scope"] == scope
        assert (await browser.ask("GET", "/v1/status")).status == (200 if "op" in scope else 403)
        account = await hub.hub.accounts.named("ada_byron")
        principal, has = rights.of(account)
        assert rights.groups_of(principal) == member
        assert has.has_denies is bool(member)
        listed = (await hub.hub.behind.grant_views.overview()).people
        assert [(each.handle, set(each.groups)) for each in listed] == [
            ("ada_byron", each) for each in (member,) if each
        ]
    provider.person["groups"] = ["crew"]
    await enter(hub, provider)
    store, accounts = hub.hub.store, hub.hub.accounts
    for issuer, member in ((provider.issuer, {"crew"}), ("", set()), ("https://i", set())):
        accounts.groups_from = issuer
        restarted = await HubRights.open(store, hub.hub.clock, accounts, spec)
        assert restarted.groups_of(principal) == member


async def test_a_provider_that_cannot_be_used_is_told_on_a_page(hub, provider, clock):
    for metadata in ({"issuer": "https://evil.example"}, {"jwks_uri": "http://evil.example"}):
        provider.metadata = metadata
        said = await Browser(hub.port).ask("GET", PATH, accept="text/html")
        assert (said.status, "location" in said.headers) == (502, False)
        clock.advance(OIDC_FAILURE_SECONDS)
    provider.is_down = True
    assert (await Browser(hub.port).ask("GET", PATH, accept="text/html")).status == 502


@pytest.mark.parametrize("is_down", [True, False])
async def test_strangers_who_begin_at_once_have_the_provider_asked_once(
    hub, provider, clock, is_down
):
    provider.is_down = is_down
    askers = [Browser(hub.port).ask("GET", PATH, accept="text/html") for _ in range(20)]
    told = {each.status for each in await asyncio.gather(*askers)}
    assert (told, provider.asked) == ({502 if is_down else 302}, 1)
    provider.is_down = False
    clock.advance(OIDC_FAILURE_SECONDS)
    await begin(Browser(hub.port))


@pytest.mark.settings(rate_limits="on", rates={"sign_in_per_hour": 3})
async def test_failed_returns_count_as_guesses(hub, provider):
    provider.id_token = unsigned
    told = [(await enter(hub, provider))[1].status for _ in range(5)]
    assert told == [403, 403, 403, 429, 429]


@pytest.mark.settings(public_url="http://hub.example")
async def test_nobody_is_sent_away_from_a_page_without_tls(hub):
    browser = Browser(hub.port)
    browser.host = "hub.example"
    assert (await browser.ask("GET", PATH)).status == 403
