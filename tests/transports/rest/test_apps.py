"""An app is connected: it finds the hub, registers, a person consents, and it gets its tokens."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from folkmoot.bounds import DEVICES_PER_HOUR
from folkmoot.core import errors as e
from tests.harness import ask
from tests.mcp_harness import BOTH, modern
from tests.transports.rest.support import done, house
from tests.transports.rest.test_sessions import Browser
from tests.transports.rest.test_tapes import operator

AUTHORIZATION = "/v1/authorization"
BACK = "http://127.0.0.1:7777/callback"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
FORM = {"content-type": "application/x-www-form-urlencoded"}


class App:
    """A public app on the same machine, as the hub's endpoints see it."""

    def __init__(self, house, host="localhost"):
        self.port, self.host = house.port, f"{host}:{house.port}"
        self.issuer = f"http://{self.host}"

    async def send(self, method, path, body=b"", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await ask(
            self.port, path, method=method, headers={"host": self.host, **named}, body=body
        )

    async def metadata(self, path):
        return done(await self.send("GET", path), 200)

    async def register(self, **members):
        told = {"client_name": "Claude", "redirect_uris": [BACK], **members}
        told.setdefault("token_endpoint_auth_method", "none")
        body = json.dumps(told).encode()
        self.answer = await self.send("POST", "/register", body, content_type="application/json")
        self.id = self.answer.json().get("client_id", "") if self.answer.body else ""
        return self

    def query(self, **changed):
        asked = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": BACK,
            "state": "s 1",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": f"{self.issuer}/mcp",
            **changed,
        }
        return urlencode({name: value for name, value in asked.items() if value is not None})

    async def ask(self, path, **members):
        body = urlencode({"client_id": self.id, **members}).encode()
        return await self.send("POST", path, body, content_type=FORM["content-type"])

    async def exchange(self, code, **members):
        given = {"code": code, "redirect_uri": BACK, "code_verifier": VERIFIER, **members}
        return await self.ask("/token", grant_type="authorization_code", **given)

    async def refresh(self, token, **members):
        return await self.ask("/token", grant_type="refresh_token", refresh_token=token, **members)

    async def call(self, token, name="msg/whoami", **arguments):
        sent, headers = modern("tools/call", name=name, arguments=arguments)
        headers |= {**BOTH, "authorization": f"Bearer {token}"}
        named = {key.replace("-", "_"): value for key, value in headers.items()}
        return await self.send("POST", "/mcp", json.dumps(sent).encode(), **named)


@pytest.fixture
async def app(hub):
    return await App(hub).register()


@pytest.fixture
async def browser(hub, ada):
    return await Browser(hub.port).sign_in(ada.token)


async def decided(browser, query, allow=True, scopes=("mail.read", "account.read")):
    """The members that the app is sent back with."""
    given = {"query": query, "allow": allow, "scopes": list(scopes)}
    told = done(await browser.ask("POST", AUTHORIZATION, given), 200)
    assert told["redirect"].startswith(BACK + "?")
    return {name: value for name, (value,) in parse_qs(urlsplit(told["redirect"]).query).items()}


async def connected(app, browser, **options):
    """The tokens of an app that a person let in."""
    back = await decided(browser, app.query(), **options)
    return done(await app.exchange(back["code"]), 200)


async def test_an_app_finds_registers_is_allowed_works_renews_and_is_disconnected(app, browser):
    challenge = (await app.send("GET", "/mcp")).headers["www-authenticate"]
    assert f'resource_metadata="{app.issuer}/.well-known/oauth-protected-resource/mcp"' in challenge
    resource = await app.metadata("/.well-known/oauth-protected-resource/mcp")
    assert resource["authorization_servers"] == [app.issuer]
    server = await app.metadata("/.well-known/oauth-authorization-server")
    assert server["issuer"] == app.issuer
    shown = await browser.get(f"{AUTHORIZATION}?{urlencode({'query': app.query()})}")
    assert (shown["name"], shown["sent_to"], shown["handle"]) == ("Claude", "this device", "ada")
    assert {each["scope"] for each in shown["scopes"] if not each["chosen"]} == {"decide"}
    back = await decided(browser, app.query())
    assert (back["state"], back["iss"]) == ("s 1", app.issuer)
    tokens = done(await app.exchange(back["code"]), 200)
    assert tokens["token_type"] == "Bearer"
    assert tokens["scope"] == "account.read mail.read"
    assert "ada" in (await app.call(tokens["access_token"])).text
    more = done(await app.refresh(tokens["refresh_token"]), 200)
    assert "ada" in (await app.call(more["access_token"])).text
    listed = (await browser.get("/v1/me/credentials"))["tokens"]
    (grant,) = (each for each in listed if each["kind"] == "app")
    assert grant["label"] == "Claude"
    done(await browser.ask("DELETE", f"/v1/me/credentials/{grant['id']}"), 204)
    refused = await app.call(more["access_token"])
    assert refused.status == 401
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    assert (await app.refresh(more["refresh_token"])).json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration",
        "/mcp/.well-known/openid-configuration",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ],
)
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
@pytest.mark.requirement("sign-in.metadata")
async def test_metadata_is_where_clients_look_and_names_the_hub_as_they_reached_it(hub, host, path):
    app = App(hub, host)
    answer = await app.send("GET", path, origin="https://inspector.example")
    assert answer.headers["access-control-allow-origin"] == "*"
    told = answer.json()
    assert told.get("issuer", app.issuer) == app.issuer
    assert told.get("resource", f"{app.issuer}/mcp") == f"{app.issuer}/mcp"
    assert not told.get("client_id_metadata_document_supported")


@pytest.mark.settings(public_url="https://hub.example/")
async def test_a_hub_has_one_name_however_its_operator_ends_the_address(hub):
    app = App(hub, "hub.example")
    app.host = "hub.example"
    server = await app.metadata("/.well-known/oauth-authorization-server")
    resource = await app.metadata("/.well-known/oauth-protected-resource")
    assert server["issuer"] == "https://hub.example"
    assert resource["resource"] == "https://hub.example/mcp"
    assert resource["authorization_servers"] == [server["issuer"]]
    own = await app.metadata("/oauth/client.json")
    assert own["client_id"] == "https://hub.example/oauth/client.json"
    assert hub.hub.behind.consents.link("x", "y").startswith("https://hub.example/connect/")


async def test_apps_in_pages_of_other_origins_ask_here_and_nowhere_else(app, browser):
    elsewhere = {"origin": "https://inspector.example"}
    asked = {**elsewhere, "access_control_request_method": "POST"}
    for path in ("/register", "/token", "/revoke"):
        allowed = await app.send("OPTIONS", path, **asked)
        assert allowed.status == 200
        assert allowed.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in allowed.headers
        assert (await app.send("POST", path, b"", **elsewhere)).status in {400, 401}
        assert (await app.send("GET", path)).status == 405
    assert (await app.send("POST", "/mcp", b"{}", **elsewhere)).status == 403
    assert (await app.send("POST", AUTHORIZATION, b"{}", **elsewhere)).status == 403


REFUSED = {
    "another client's code": ({"client_id": "other"}, 401, "invalid_client"),
    "another redirect": ({"redirect_uri": "http://127.0.0.1:7778/callback"}, 400, "invalid_grant"),
    "no verifier": ({"code_verifier": ""}, 400, "invalid_request"),
    "another verifier": ({"code_verifier": "w" * 43}, 400, "invalid_grant"),
    "the challenge as verifier": ({"code_verifier": CHALLENGE}, 400, "invalid_grant"),
    "another resource": ({"resource": "https://other.example/mcp"}, 400, "invalid_grant"),
    "a secret that it has not": ({"client_secret": "x"}, 401, "invalid_client"),
    "a grant of another kind": ({"grant_type": "password"}, 400, "unsupported_grant_type"),
}


@pytest.mark.parametrize("attack", REFUSED)
async def test_a_code_is_good_for_its_own_app_alone(app, browser, attack):
    changed, status, error = REFUSED[attack]
    code = (await decided(browser, app.query()))["code"]
    given = {"grant_type": "authorization_code", "redirect_uri": BACK, "code": code}
    answer = await app.ask("/token", **{**given, "code_verifier": VERIFIER, **changed})
    assert (answer.status, answer.json()["error"]) == (status, error)
    assert code not in answer.text
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.requirement("sign-in.code-once")
async def test_a_code_that_is_used_twice_ends_what_it_opened(app, browser):
    code = (await decided(browser, app.query()))["code"]
    tokens = done(await app.exchange(code), 200)
    assert (await app.exchange(code)).json()["error"] == "invalid_grant"
    assert (await app.call(tokens["access_token"])).status == 401


@pytest.mark.settings(rate_limits="on")
async def test_no_stranger_has_a_document_fetched_and_its_app_renews_while_its_host_is_away(
    hub, app, browser
):
    fetched = []
    app.id = "https://app.example/client.json"

    async def fetch(url, _most):
        fetched.append(url)
        document = {"client_id": url, "client_name": "App", "redirect_uris": [BACK]}
        return "application/json", json.dumps(document).encode()

    hub.hub.clients.fetch = fetch
    tokens = await connected(app, browser)
    assert fetched == [app.id]
    fetched.clear()
    hub.hub.clients._read.clear()
    tokens = done(await app.refresh(tokens["refresh_token"]), 200)
    assert (await app.refresh(tokens["refresh_token"], client_secret="x")).status == 401
    app.id = "https://other.example/client.json"
    answer = await app.refresh(tokens["refresh_token"])
    assert (answer.status, answer.json()["error"]) == (400, "invalid_grant")
    assert (await app.ask("/revoke", token=tokens["access_token"])).status == 200
    assert not fetched
    seen = []
    for _ in range(102):
        hub.hub.clients._read.clear()
        seen.append((await app.ask("/device_authorization")).status)
    assert set(seen) == {200, 429}
    assert len(fetched) == seen.count(200)
    assert (await app.exchange("made-up")).json()["error"] == "invalid_grant"
    assert len(fetched) == seen.count(200)


async def test_whoever_looks_for_why_hears_that_an_apps_document_cannot_be_read(hub, app):
    async def fetch(_url, _most):
        raise e.ServerUnreachable("It is away.")

    hub.hub.clients.fetch = fetch
    app.id = "https://app.example/client.json"
    answer = await app.exchange("made-up")
    assert (answer.status, answer.json()["error"]) == (401, "invalid_client")


async def test_an_app_revokes_its_own_tokens_and_no_other_apps(hub, app, browser):
    tokens = await connected(app, browser)
    other = await App(hub).register(client_name="Other")
    done(await other.ask("/revoke", token=tokens["refresh_token"]), 200)
    assert (await app.call(tokens["access_token"])).status == 200
    done(await app.ask("/revoke", token=tokens["access_token"]), 200)
    assert (await app.call(tokens["access_token"])).status == 401
    done(await app.ask("/revoke", token=tokens["access_token"]), 200)


@pytest.mark.parametrize("auth", ["client_secret_post", "client_secret_basic"])
async def test_an_app_with_a_secret_shows_its_own(hub, browser, auth):
    app = await App(hub).register(token_endpoint_auth_method=auth)
    other = await App(hub).register(token_endpoint_auth_method=auth)
    code = (await decided(browser, app.query()))["code"]
    own, others = (each.answer.json()["client_secret"] for each in (app, other))
    for secret, status in (("", 401), (others, 401), (own, 200)):
        assert (await app.exchange(code, client_secret=secret)).status == status


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"client_id": "unknown"}, "does not know the app"),
        ({"redirect_uri": "http://127.0.0.1:7777/other"}, "did not register"),
        ({"redirect_uri": "https://evil.example/callback"}, "did not register"),
        ({"redirect_uri": "javascript:alert(1)"}, "did not register"),
    ],
)
@pytest.mark.requirement("sign-in.never-led-elsewhere")
async def test_an_unknown_app_or_address_is_told_on_the_page_and_never_led_to(
    app, browser, changed, error
):
    given = {"query": app.query(**changed), "allow": True, "scopes": ["mail.read"]}
    for answer in (
        await browser.ask("POST", AUTHORIZATION, given),
        await browser.ask("GET", f"{AUTHORIZATION}?{urlencode({'query': given['query']})}"),
    ):
        assert answer.status in {400, 401}
        assert error in answer.json()["error"]["message"]
        assert "redirect" not in answer.json()


@pytest.mark.requirement("sign-in.issuer-named")
async def test_an_app_hears_that_it_was_refused_and_by_whom(app, browser):
    back = await decided(browser, app.query(), allow=False)
    assert (back["error"], back["state"], back["iss"]) == ("access_denied", "s 1", app.issuer)
    back = await decided(browser, app.query(code_challenge_method="plain"))
    assert (back["error"], back["iss"]) == ("invalid_request", app.issuer)
    query = urlencode({"query": app.query(resource="https://other.example/mcp")})
    shown = await browser.get(f"{AUTHORIZATION}?{query}")
    assert "error=invalid_target" in shown["redirect"]


@pytest.mark.parametrize("scopes", [["account"], ["*"], ["operate"], ["mail.delete"], [], ["x"]])
async def test_a_page_gives_no_scope_that_was_not_offered(app, browser, scopes):
    given = {"query": app.query(), "allow": True, "scopes": scopes}
    assert (await browser.ask("POST", AUTHORIZATION, given)).status == 400


@pytest.mark.requirement("sign-in.consent-by-person")
async def test_only_a_person_at_the_hubs_own_page_consents(hub, app, ada, browser):
    given = {"query": app.query(), "allow": True, "scopes": ["mail.read"]}
    assert (await ada.ask("POST", AUTHORIZATION, given)).status == 403
    assert (await browser.ask("POST", AUTHORIZATION, given, folkmoot_page=None)).status == 403
    foreign = {"origin": "http://localhost:1", "sec_fetch_site": "same-site"}
    assert (await browser.ask("POST", AUTHORIZATION, given, **foreign)).status == 403
    assert (await Browser(hub.port).ask("POST", AUTHORIZATION, given)).status == 401
    agent = await hub.person("robot", account_type="agent")
    theirs = await Browser(hub.port).sign_in(agent.token)
    assert (await theirs.ask("POST", AUTHORIZATION, given)).status == 403
    page = await app.send("GET", "/authorize?x=y")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


async def test_a_narrowed_session_gives_no_more_than_it_has(hub, app, ada):
    terms = {"label": "few", "scope": "mail.read account"}
    few = done(await ada.ask("POST", "/v1/me/credentials", terms), 201)["token"]
    browser = await Browser(hub.port).sign_in(few)
    given = {"query": app.query(), "allow": True, "scopes": ["mail.read", "rooms"]}
    assert (await browser.ask("POST", AUTHORIZATION, given)).status == 400


async def test_whoever_decides_gives_their_own_account_and_no_other_session_answers(
    hub, app, browser, bob
):
    """Nothing is kept of what was shown: the same request in another session is another consent."""
    shown = urlencode({"query": app.query()})
    assert (await browser.get(f"{AUTHORIZATION}?{shown}"))["handle"] == "ada"
    bobs = await connected(app, await Browser(hub.port).sign_in(bob.token))
    told = (await app.call(bobs["access_token"])).text
    assert "bob" in told
    assert "ada" not in told
    listed = (await browser.get("/v1/me/credentials"))["tokens"]
    assert not [each for each in listed if each["kind"] == "app"]


async def test_session_fixation_a_cookie_that_was_planted_stays_nobodys(hub, app, ada, bob):
    planted = f"folkmoot_{hub.port}=bs_{'0' * 64}"
    victim = Browser(hub.port)
    for cookie in (planted, (await Browser(hub.port).sign_in(bob.token)).cookie):
        victim.cookie = cookie
        await victim.sign_in(ada.token)
        assert victim.cookie != cookie
        attacker = Browser(hub.port)
        attacker.cookie = cookie
        given = {"query": app.query(), "allow": True, "scopes": ["account.read"]}
        answer = await attacker.ask("POST", AUTHORIZATION, given)
        # The session that bob had planted is over, or his own: it is never ada's.
        if answer.status == 200:
            code = parse_qs(urlsplit(answer.json()["redirect"]).query)["code"][0]
            tokens = done(await app.exchange(code), 200)
            assert "ada" not in (await app.call(tokens["access_token"])).text


async def test_two_decisions_of_a_double_click_are_two_grants_and_each_code_is_good_once(
    app, browser
):
    query = app.query()
    first, second = await decided(browser, query), await decided(browser, query)
    tokens = [done(await app.exchange(each["code"]), 200) for each in (first, second)]
    assert (await app.exchange(second["code"])).json()["error"] == "invalid_grant"
    assert (await app.call(tokens[1]["access_token"])).status == 401
    assert (await app.call(tokens[0]["access_token"])).status == 200


async def test_a_token_of_another_origin_opens_nothing_here(tmp_path, app, browser):
    tokens = await connected(app, browser)
    async with house(tmp_path / "other") as there:
        await there.person("ada")
        other = await App(there).register()
        assert (await other.call(tokens["access_token"])).status == 401
        for member in ("refresh_token", "access_token"):
            refused = await other.refresh(tokens[member])
            assert refused.json()["error"] == "invalid_grant"
        # The id of an app that registered elsewhere is nobody's here.
        other.id = app.id
        assert (await other.refresh(tokens["refresh_token"])).json()["error"] == "invalid_client"
    assert (await app.call(tokens["access_token"])).status == 200


@pytest.mark.requirement("sign-in.nothing-secret-written")
async def test_no_secret_of_signing_in_is_in_a_log_a_tape_metrics_the_audit_log_or_a_url(
    tmp_path, log
):
    tapes = tmp_path / "tapes"
    async with house(tmp_path / "hub", record={"folder": str(tapes)}) as hub:
        ada = await hub.person("ada")
        browser = await Browser(hub.port).sign_in(ada.token)
        app = await App(hub).register(token_endpoint_auth_method="client_secret_post")
        own = app.answer.json()["client_secret"]
        back = await decided(browser, app.query())
        secrets = [ada.token, browser.cookie.partition("=")[2], own, back["code"], VERIFIER]
        pair = done(await app.exchange(back["code"], client_secret=own), 200)
        pairs = [pair, done(await app.refresh(pair["refresh_token"], client_secret=own), 200)]
        for each in pairs:
            assert "ada" in (await app.call(each["access_token"])).text
            secrets += [each["access_token"], each["refresh_token"]]
        # What is refused, and sent where it does not belong, is as secret.
        assert (await app.exchange(back["code"], client_secret=own)).status == 400
        assert (await app.call(pair["refresh_token"])).status == 401
        assert (await app.send("GET", f"/v1/me?token={pair['access_token']}")).status == 401
        assert (await app.send("GET", f"/authorize?code={back['code']}")).status == 200
        done(await app.ask("/revoke", token=pair["access_token"], client_secret=own), 200)
        asked = await app.ask("/device_authorization", client_secret=own)
        secrets += [asked.json().get("device_code", own)]
        await hub.hub._audit.drain()
        audit = json.dumps(await (await operator(hub)).get("/v1/audit"))
        assert "app.connected" in audit
        metrics = (await app.send("GET", "/metrics")).text
        assert "folkmoot_" in metrics
    written = {
        "logs": log.getvalue(),
        "audit": audit,
        "metrics": metrics,
        "tapes": "".join(each.read_text() for each in tapes.iterdir()),
    }
    assert "whoami" in written["tapes"]
    for place, text in written.items():
        for secret in secrets:
            assert secret not in text, place


async def test_whoever_comes_to_an_address_is_sent_to_a_name_that_passkeys_know(hub, app):
    answer = await App(hub, "127.0.0.1").send("GET", f"/authorize?{app.query(resource=None)}")
    assert answer.status == 302
    there = urlsplit(answer.headers["location"])
    assert there.netloc == app.host
    assert parse_qs(there.query)["resource"] == [f"http://127.0.0.1:{hub.port}/mcp"]


@pytest.mark.parametrize("extra", [{"padding": "x" * 17_000}, {"grant_types": ["jwt-bearer"]}])
async def test_a_registration_that_is_too_long_or_wants_another_grant_is_refused(hub, extra):
    assert (await App(hub).register(**extra)).answer.status in {400, 413}


@pytest.mark.settings(registration="invite")
async def test_a_hub_by_invitation_asks_who_connects_to_sign_in_but_lets_the_invited_register(hub):
    app = App(hub)
    for method in ("initialize", "tools/list", "server/discover", "ping"):
        sent, headers = modern(method)
        named = {name.replace("-", "_"): value for name, value in {**BOTH, **headers}.items()}
        answer = await app.send("POST", "/mcp", json.dumps(sent).encode(), **named)
        assert answer.status == 401, method
        assert "resource_metadata=" in answer.headers["www-authenticate"]
        assert "error=" not in answer.headers["www-authenticate"]
    assert (await app.call("", "msg/register", handle="zoe")).status == 200


@pytest.mark.settings(rate_limits="on")
async def test_nobody_has_the_hub_fetch_without_end(app, browser):
    async def asked():
        path = f"{AUTHORIZATION}?{urlencode({'query': app.query()})}"
        return (await browser.ask("GET", path)).status

    assert {await asked() for _ in range(DEVICES_PER_HOUR)} == {200}
    assert await asked() == 429


@pytest.mark.settings(sign_in={"challenge": "always"})
async def test_an_open_hub_can_ask_everyone_who_connects_to_sign_in(hub):
    answer = await App(hub).call("")
    assert answer.status == 401
    assert "resource_metadata=" in answer.headers["www-authenticate"]


@pytest.mark.settings(registration="invite", sign_in={"challenge": "calls"})
async def test_a_hub_can_let_everyone_connect(hub):
    assert (await App(hub).call("")).status == 200
    assert (await App(hub).send("GET", "/mcp")).status == 401


@pytest.mark.settings(sign_in={"token_in_url": False})
@pytest.mark.parametrize("query", ["token={}", "tools=all&token={}", "%74oken={}"])
@pytest.mark.parametrize("path", ["/mcp", "/v1/me", "/ws", "/", "/v1/events"])
async def test_a_hub_can_take_no_token_in_a_url(hub, ada, path, query):
    app = App(hub)
    refused = await app.send("GET", f"{path}?{query.format(ada.token)}", accept="application/json")
    assert refused.status == 400
    assert "takes no token in a URL" in refused.json()["error"]["message"]
    assert ada.token not in refused.text
    assert (await ada.ask("GET", "/v1/me")).status == 200


async def test_a_hub_takes_the_token_of_an_account_in_a_url_unless_it_is_told_not_to(hub, ada):
    assert (await App(hub).send("GET", f"/v1/me?token={ada.token}")).status == 200
