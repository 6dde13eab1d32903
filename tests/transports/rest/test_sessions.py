"""Browser sessions: the cookie, who may use it, how it ends, and what other pages cannot do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin

from folkmoot.accounts.limits import MAX_BROWSER_SESSIONS, ONE_TIME_CODE_SECONDS
from folkmoot.core.closecodes import CloseCode
from tests.faults.backends import operator as at_socket
from tests.harness import Answer
from tests.mcp_harness import rpc
from tests.transports.rest.support import Asker, House, done, house, refused
from tests.transports.rooms.support import ending

SESSION = "/v1/session"
ME = "/v1/me"
TOKENS = "/v1/me/credentials"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
DAY = 86_400


@asynccontextmanager
async def everything_open(browser: Browser) -> AsyncIterator[None]:
    """A stream of events and a place in a room, both of which the hub ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", browser.asker.port)
    head = f"GET /v1/events HTTP/1.1\r\nHost: {browser.host}\r\nCookie: {browser.cookie}"
    writer.write(f"{head}\r\nSec-Fetch-Site: same-origin\r\n\r\n".encode())
    assert b"200" in await reader.readline()
    socket = await browser.join(browser.origin)
    assert "ada" in str(await socket.recv())
    yield
    # The connection of the stream could be used again.
    await reader.readuntil(b"\r\n0\r\n\r\n")
    await socket.wait_closed()
    writer.close()


class Browser:
    """A browser as the hub sees it: it keeps a cookie, and its pages have an origin."""

    def __init__(self, port: int, host: str = "localhost") -> None:
        self.host = f"{host}:{port}"
        self.asker = Asker(port)
        self.cookie = ""

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    async def ask(
        self, method: str, path: str, content: object = None, **headers: str | None
    ) -> Answer:
        """What a page of the hub asks; a header that is None is not sent."""
        sent: dict[str, str | None] = {
            "host": self.host,
            "cookie": self.cookie,
            "user-agent": FIREFOX,
            "sec-fetch-site": "same-origin",
        }
        if method not in {"GET", "HEAD"}:
            sent |= {"origin": self.origin, "folkmoot-page": "1"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        kept = {name: value for name, value in sent.items() if value}
        answer = await self.asker.ask(method, path, content, headers=kept)
        if "set-cookie" in answer.headers:
            pair = answer.headers["set-cookie"].partition(";")[0]
            self.cookie = pair if pair.partition("=")[2] else ""
        return answer

    async def get(self, path: str, **headers: str | None) -> Any:
        return done(await self.ask("GET", path, **headers), 200)

    async def join(self, origin: str | None) -> ClientConnection:
        """A WebSocket to the room `square`, from a page of this origin."""
        return await connect(
            f"ws://{self.host}/ws?room=square",
            origin=None if origin is None else Origin(origin),
            additional_headers={"Cookie": self.cookie},
        )

    async def sign_in(self, token: str) -> Browser:
        done(await self.ask("POST", SESSION, {"token": token}), 200)
        return self

    async def enter(self, code: str) -> Answer:
        """Sign in with a one-time code."""
        return await self.ask("POST", f"{SESSION}/code", {"code": code})


async def code_of(who: Browser | Asker) -> str:
    """A one-time code that someone makes."""
    code: str = done(await who.ask("POST", "/v1/me/codes"), 201)["code"]
    return code


@pytest.fixture
async def browser(hub: House, ada: Asker) -> Browser:
    """Ada's, who is signed in."""
    return await Browser(hub.port).sign_in(ada.token)


@pytest.mark.requirement("browser.cookie", "browser.sign-in")
async def test_a_token_opens_a_session_whose_cookie_no_page_reads(hub, ada):
    browser = Browser(hub.port)
    about = ("handle", "display_name", "expires_at", "scope", "guest", "room", "company")
    assert await browser.get(SESSION) == {**dict.fromkeys(about), "registration": "open"}
    answer = await browser.ask("POST", SESSION, {"token": ada.token})
    assert done(answer, 200) == {"handle": "ada", "display_name": "ada"}
    name, *attributes = answer.headers["set-cookie"].split("; ")
    assert name.startswith(f"folkmoot_{hub.port}=bs_")
    assert attributes == ["Path=/", f"Max-Age={30 * DAY}", "HttpOnly", "SameSite=Strict"]
    assert ada.token not in answer.text
    here_now = await browser.get(SESSION)
    assert (here_now["handle"], here_now["scope"]) == ("ada", "*")
    assert (await browser.get(ME))["handle"] == "ada"
    sent = await browser.ask("PATCH", ME, {"bio": "Sails."})
    assert done(sent, 200)["bio"] == "Sails."
    # The secret of a cookie is no token, and a token is no cookie.
    secret = browser.cookie.partition("=")[2]
    refused(await Asker(hub.port, secret).ask("GET", ME), 401, "token_invalid")
    stranger = Browser(hub.port)
    stranger.cookie = f"folkmoot_{hub.port}={ada.token}"
    refused(await stranger.ask("GET", ME), 401, "token_invalid")
    rows = await hub.hub.store.read(lambda tx: tx.fetch("SELECT * FROM credentials"))
    assert secret not in repr(rows)


@pytest.mark.requirement("browser.origin", "browser.sign-in")
async def test_a_cookie_changes_something_from_a_page_of_exactly_this_origin_alone(
    hub, ada, browser
):
    attacks: tuple[dict[str, str | None], ...] = (
        {"origin": "http://localhost:1"},
        {"origin": f"http://127.0.0.1:{hub.port}"},
        {"origin": f"https://localhost:{hub.port}"},
        {"origin": "null"},
        {"origin": None},
        {"folkmoot_page": None},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "none"},
    )
    for attack in attacks:
        for who, method, path, content in (
            (browser, "PATCH", ME, {"bio": "taken over"}),
            (browser, "POST", "/v1/me/codes", None),
            (browser, "DELETE", SESSION, None),
            (browser, "POST", "/v1/accounts", {"handle": "mallory"}),
            # Else a page of another port could sign someone in to an account of its own.
            (Browser(hub.port), "POST", SESSION, {"token": ada.token}),
        ):
            answer = await who.ask(method, path, content, **attack)
            refused(answer, 403, "origin_not_allowed")
            assert "set-cookie" not in answer.headers
    assert (await browser.get(ME))["bio"] == ""
    # A program registers and recovers as before, and gets no cookie.
    answer = await hub.stranger.ask("POST", "/v1/accounts", {"handle": "bob"})
    assert answer.status == 201
    assert "set-cookie" not in answer.headers


@pytest.mark.requirement("browser.origin")
async def test_a_page_of_another_port_reads_nothing_with_the_cookie(browser):
    for path in (ME, "/v1/events", "/v1/threads"):
        for told in (
            {"origin": "http://localhost:1"},
            {"origin": None, "sec_fetch_site": "same-site"},
            {"origin": None, "sec_fetch_site": "none"},
        ):
            answer = await browser.ask("GET", path, **told)
            refused(answer, 403, "origin_not_allowed")
            assert "access-control-allow-origin" not in answer.headers
    # Whoever opens a public address by hand is answered as a stranger.
    seen = await browser.get(SESSION, sec_fetch_site="none")
    assert seen["handle"] is None
    await browser.get("/v1/openapi.json", sec_fetch_site="none")


async def test_a_token_and_a_cookie_do_not_mix_and_two_cookies_are_none(hub, ada, browser):
    answer = await browser.ask("GET", ME, authorization=f"Bearer {ada.token}")
    refused(answer, 400, "tokens_differ")
    answer = await browser.ask("GET", f"{ME}?token={ada.token}")
    refused(answer, 400, "tokens_differ")
    other = Browser(hub.port)
    other.cookie = f"theme=dark; {browser.cookie}; x"
    assert (await other.get(ME))["handle"] == "ada"
    for cookie in (
        f"{browser.cookie}; folkmoot_{hub.port}=bs_{'0' * 64}",
        f"folkmoot_1={browser.cookie.partition('=')[2]}",
        "x" * 9_000 + f"; {browser.cookie}",
    ):
        other.cookie = cookie
        refused(await other.ask("GET", ME), 401, "authentication_required")
    # MCP knows no cookies: a page of the hub has REST.
    call = rpc("tools/call", {"name": "msg_whoami", "arguments": {}})
    answer = await browser.ask("POST", "/mcp", call, accept="application/json, text/event-stream")
    assert "ada" not in answer.text


@pytest.mark.requirement("browser.cookie")
async def test_off_this_machine_the_cookie_needs_https(tmp_path):
    async with house(tmp_path, http={"allowed_hosts": ["hub.lan"]}) as here:
        ada = await here.person("ada")
        browser = Browser(here.port, "hub.lan")
        answer = await browser.ask("POST", SESSION, {"token": ada.token})
        assert "HTTPS" in refused(answer, 403, "origin_not_allowed")["message"]
    async with house(tmp_path, public_url="https://hub.example.org") as here:
        browser = Browser(here.port, "hub.example.org")
        origin = "https://hub.example.org"
        answer = await browser.ask("POST", SESSION, {"token": ada.token})
        assert origin in refused(answer, 403, "origin_not_allowed")["message"]
        answer = await browser.ask("POST", SESSION, {"token": ada.token}, origin=origin)
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-folkmoot_443=bs_")
        assert cookie.endswith("; HttpOnly; SameSite=Strict; Secure")
        assert (await browser.get(ME))["handle"] == "ada"


@pytest.mark.requirement("browser.sign-out", "browser.listed")
async def test_sessions_are_listed_among_the_tokens_and_end_one_by_one(hub, ada, browser):
    second = await Browser(hub.port).sign_in(ada.token)
    listed = (await second.get(TOKENS))["tokens"]
    assert sorted((it["kind"], it["label"], it["current"]) for it in listed) == [
        ("browser", "Firefox on Linux", False),
        ("browser", "Firefox on Linux", True),
        ("token", "first token", False),
    ]
    assert (await browser.ask("DELETE", SESSION)).status == 204
    assert not browser.cookie
    refused(await browser.ask("GET", ME), 401, "authentication_required")
    assert (await second.get(ME))["handle"] == "ada"
    own = next(it["id"] for it in (await second.get(TOKENS))["tokens"] if it["current"])
    assert (await ada.ask("DELETE", f"{TOKENS}/{own}")).status == 204
    ended = refused(await second.ask("GET", ME), 401, "token_invalid")
    assert "signed out in this browser" in ended["message"]
    assert (await second.get(SESSION))["handle"] is None
    # Signing out once more forgets the cookie that is of no use.
    answer = await second.ask("DELETE", SESSION)
    assert answer.status == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]


@pytest.mark.requirement("browser.ends-with-token")
async def test_a_session_ends_with_the_token_it_was_opened_with_and_has_its_scope(hub, ada):
    wanted = {"scope": "mail.read account.read", "expires_in": 3600}
    narrow = done(await ada.ask("POST", TOKENS, wanted), 201)
    browser = await Browser(hub.port).sign_in(narrow["token"])
    assert (await browser.get(SESSION))["expires_at"] == narrow["expires_at"]
    assert (await browser.get(ME))["handle"] == "ada"
    refused(await browser.ask("PATCH", ME, {"bio": "x"}), 403, "scope_missing")
    refused(await browser.ask("POST", "/v1/me/codes"), 403, "scope_missing")
    assert (await ada.ask("DELETE", f"{TOKENS}/{narrow['id']}")).status == 204
    refused(await browser.ask("GET", ME), 401, "token_invalid")


@pytest.mark.requirement("browser.ends-at-once")
@pytest.mark.parametrize("ends", ["session", "token", "account"])
async def test_what_a_browser_has_open_ends_with_its_session(ada, browser, ends):
    await ada.create("square")
    for origin in ("http://localhost:1", None):
        assert (await ending(await browser.join(origin))).code == CloseCode.NOT_ALLOWED
    async with everything_open(browser):
        if ends == "account":
            assert (await ada.ask("DELETE", f"{ME}?confirm=ada")).status == 200
        else:
            kind = "browser" if ends == "session" else "token"
            listed = (await ada.get(TOKENS))["tokens"]
            which = next(it["id"] for it in listed if it["kind"] == kind)
            assert (await ada.ask("DELETE", f"{TOKENS}/{which}")).status == 204


async def opened_from(browser: Browser | Asker, port: int) -> Browser:
    """Another browser, signed in with a code that was made in this one."""
    other = Browser(port)
    done(await other.enter(await code_of(browser)), 200)
    return other


@pytest.mark.parametrize("ends", ["token", "first browser", "expiry"])
async def test_whatever_came_from_a_token_or_session_ends_with_it_in_every_generation(
    hub, ada, clock, ends
):
    await ada.create("square")
    laptop = done(await ada.ask("POST", TOKENS, {"expires_in": 2 * DAY}), 201)
    family = [await opened_from(Asker(hub.port, laptop["token"]), hub.port)]
    for _ in range(3):
        family.append(await opened_from(family[-1], hub.port))
    async with AsyncExitStack() as stack:
        for browser in family:
            assert (await browser.get(ME))["handle"] == "ada"
            await stack.enter_async_context(everything_open(browser))
        if ends == "token":
            assert (await ada.ask("DELETE", f"{TOKENS}/{laptop['id']}")).status == 204
        elif ends == "first browser":
            assert (await family[0].ask("DELETE", SESSION)).status == 204
        else:
            clock.advance(2 * DAY)
            await hub.hub.accounts.authentication.upkeep()
        for browser in family:
            code = "authentication_required" if not browser.cookie else "token_invalid"
            refused(await browser.ask("GET", "/v1/threads"), 401, code)
    kinds = [it["kind"] for it in (await ada.get(TOKENS))["tokens"]]
    assert kinds.count("browser") == 0


async def test_a_browser_that_uses_a_code_of_its_own_family_stays_signed_in(hub, browser):
    second = await opened_from(browser, hub.port)
    for maker in (browser, second):
        done(await browser.enter(await code_of(maker)), 200)
        assert (await browser.get(ME))["handle"] == "ada"
    assert (await second.get(ME))["handle"] == "ada"


@pytest.mark.requirement("browser.expires")
@pytest.mark.settings(web={"session_idle_seconds": 7 * DAY, "session_seconds": 30 * DAY})
async def test_a_session_ends_when_it_is_not_used_and_at_the_latest_after_its_time(
    hub, browser, bob, clock
):
    begun = clock.now()
    upkeep = hub.hub.accounts.authentication.upkeep
    for _ in range(4):
        clock.advance(6 * DAY)
        assert (await browser.get(SESSION))["handle"] == "ada"
        await upkeep()
    # Used until the end: the longest time there is.
    assert (await browser.get(SESSION))["expires_at"] == int(begun) + 30 * DAY
    clock.advance(6 * DAY)
    assert (await browser.get(SESSION))["handle"] is None
    refused(await browser.ask("GET", ME), 401, "token_invalid")
    idle = await Browser(hub.port).sign_in(bob.token)
    await upkeep()
    clock.advance(7 * DAY)
    refused(await idle.ask("GET", ME), 401, "token_invalid")


@pytest.mark.requirement("browser.one-time-code")
async def test_a_one_time_code_opens_one_session_soon(hub, ada, clock):
    made = done(await ada.ask("POST", "/v1/me/codes"), 201)
    code = made["code"]
    assert made["url"] == f"http://localhost:{hub.port}/sign-in#{code}"
    browser = Browser(hub.port)
    # Looking at the link uses nothing up, and a code is neither token nor cookie.
    await browser.ask("GET", "/sign-in")
    refused(await Asker(hub.port, code).ask("GET", ME), 401, "token_invalid")
    plain = await hub.stranger.ask("POST", f"{SESSION}/code", {"code": code})
    refused(plain, 403, "origin_not_allowed")
    both = await asyncio.gather(browser.enter(code), Browser(hub.port).enter(code))
    assert sorted(answer.status for answer in both) == [200, 403]
    refused(await Browser(hub.port).enter(code), 403, "one_time_code_invalid")
    late = await code_of(ada)
    clock.advance(ONE_TIME_CODE_SECONDS)
    refused(await browser.enter(late), 403, "one_time_code_invalid")
    # A code is worth nothing once the token is gone that it was made with.
    laptop = done(await ada.ask("POST", TOKENS, {"label": "laptop"}), 201)
    stolen = await code_of(Asker(hub.port, laptop["token"]))
    await ada.ask("DELETE", f"{TOKENS}/{laptop['id']}")
    refused(await browser.enter(stolen), 403, "one_time_code_invalid")


async def test_an_operators_code_opens_a_session_that_operates_and_only_then(hub, ada):
    plain, operator = Browser(hub.port), Browser(hub.port)
    for browser, operate, where in (
        (plain, False, "/sign-in#"),
        (operator, True, "/sign-in?next=/#"),
    ):
        given = {"handle": "ada", "operate": operate}
        made = await at_socket(hub.hub, "folkmoot/create_code_for", **given)
        assert made["url"].endswith(f"{where}{made['code']}")
        done(await browser.enter(made["code"]), 200)
    assert (await plain.get(SESSION))["scope"] == "*"
    assert (await operator.get(SESSION))["scope"] == "* operate"
    refused(await plain.ask("GET", "/v1/accounts"), 403, "scope_missing")
    assert len((await operator.get("/v1/accounts"))["people"]) == 1
    # It is ada's session beside, and nothing that is made with it operates.
    assert (await operator.get(ME))["handle"] == "ada"
    answer = await operator.ask("POST", TOKENS, {"label": "more"}, folkmoot_confirm=ada.token)
    assert done(answer, 201)["scope"] == "*"
    other = await opened_from(operator, hub.port)
    assert (await other.get(SESSION))["scope"] == "* operate"
    # What touches files or keys stays at the socket.
    answer = await operator.ask("POST", "/v1/people/ada/codes", {"operate": True})
    refused(answer, 403, "capability_denied")
    # The page at / is chosen by the cookie, also where another site leads to it.
    for site in ("none", "same-origin"):
        page = await plain.ask("GET", "/", sec_fetch_site=site)
        assert '<div id="console">' in page.text
    for cookie in ("", f"folkmoot_{hub.port}=bs_{'0' * 64}", f"folkmoot_1={ada.token}"):
        stranger = Browser(hub.port)
        stranger.cookie = cookie
        assert "A place where everyone can speak" in (await stranger.ask("GET", "/")).text
    done(await plain.ask("DELETE", SESSION), 204)
    assert "A place where everyone can speak" in (await plain.ask("GET", "/")).text


@pytest.mark.requirement("browser.register-and-recover")
async def test_registering_and_recovering_on_a_page_signs_the_browser_in(hub, bob):
    browser = Browser(hub.port)
    made = done(await browser.ask("POST", "/v1/accounts", {"handle": "ada"}), 201)
    assert (await browser.get(ME))["handle"] == "ada"
    other = await Browser(hub.port).sign_in(made["token"])
    before = other.cookie
    code = {"handle": "ada", "recovery_code": made["recovery_code"]}
    told = done(await other.ask("POST", "/v1/accounts/recover", code), 200)
    assert other.cookie != before
    assert (await other.get(ME))["handle"] == "ada"
    refused(await browser.ask("GET", ME), 401, "token_invalid")
    refused(await Asker(hub.port, made["token"]).ask("GET", ME), 401, "token_invalid")
    # Another account in the same browser takes the place of the first.
    used = Browser(hub.port)
    used.cookie = other.cookie
    await other.sign_in(bob.token)
    assert (await other.get(ME))["handle"] == "bob"
    refused(await used.ask("GET", ME), 401, "token_invalid")
    listed = await Asker(hub.port, told["token"]).get(TOKENS)
    assert [it["kind"] for it in listed["tokens"]] == ["token"]


@pytest.mark.requirement("browser.guesses")
@pytest.mark.settings(rate_limits="on", rates={"sign_in_per_hour": 3})
async def test_wrong_tokens_and_codes_are_counted_by_address(hub, ada):
    browser = Browser(hub.port)
    for wrong in ({"token": "sk_" + "0" * 64}, {"token": "nonsense"}):
        refused(await browser.ask("POST", SESSION, wrong), 401, "token_invalid")
    code = {"code": "oc_" + "0" * 64}
    refused(await browser.enter(code["code"]), 403, "one_time_code_invalid")
    # A page of another origin cannot use up the guesses of this machine.
    for path, content in ((SESSION, {"token": ada.token}), (f"{SESSION}/code", code)):
        error = refused(await browser.ask("POST", path, content), 429, "rate_limited")
        assert error["setting"] == "rates.sign_in_per_hour"


async def test_an_account_has_so_many_sessions_and_the_least_used_makes_room(hub, ada, clock):
    browsers = []
    for _ in range(MAX_BROWSER_SESSIONS + 1):
        browsers.append(await Browser(hub.port).sign_in(ada.token))
        clock.advance(1)
    refused(await browsers[0].ask("GET", ME), 401, "token_invalid")
    assert (await browsers[1].get(ME))["handle"] == "ada"
    listed = (await ada.get(TOKENS))["tokens"]
    assert len(listed) == MAX_BROWSER_SESSIONS + 1
    # Tokens have their own quota, and may outlast the session they are made in.
    laptop = {"label": "laptop"}
    answer = await browsers[1].ask("POST", TOKENS, laptop, folkmoot_confirm=ada.token)
    assert done(answer, 201)["expires_at"] is None


async def test_a_browser_makes_tokens_only_with_a_token_older_than_its_sign_in(
    hub, ada, browser, bob
):
    narrow = done(await ada.ask("POST", TOKENS, {"scope": "account"}), 201)["token"]
    brief = done(await ada.ask("POST", TOKENS, {"expires_in": 60}), 201)["token"]

    async def create(where: Browser, token: str | None, **wanted: Any) -> Answer:
        return await where.ask("POST", TOKENS, wanted, folkmoot_confirm=token)

    count = len((await ada.get(TOKENS))["tokens"])
    for wrong in (None, "sk_" + "0" * 64, "nonsense", bob.token):
        refused(await create(browser, wrong), 403, "confirmation_invalid")
    assert len((await ada.get(TOKENS))["tokens"]) == count
    # With the token it was opened with; what it makes then is younger, at once.
    made = done(await create(browser, ada.token, label="laptop"), 201)["token"]
    grown = done(await Asker(hub.port, made).ask("POST", TOKENS, {}), 201)["token"]
    later = await opened_from(browser, hub.port)
    for token in (made, grown):
        for where in (browser, later):
            answer = refused(await create(where, token), 403, "confirmation_invalid")
            assert "older" in answer["message"]
    done(await create(later, ada.token), 201)
    # Whoever signs in with it anew shows it.
    again = await Browser(hub.port).sign_in(made)
    done(await create(again, made), 201)
    # It has no more scope and no more life than what confirmed it.
    fresh = await Browser(hub.port).sign_in(made)
    refused(await create(fresh, narrow), 400, "argument_invalid")
    done(await create(fresh, narrow, scope="account"), 201)
    refused(await create(fresh, brief), 400, "argument_invalid")
    done(await create(fresh, brief, expires_in=10), 201)


async def test_a_suspended_account_cannot_sign_in_and_its_sessions_do_not_work(hub, ada, browser):
    code = await code_of(ada)
    account = await hub.hub.accounts.named("ada")
    await hub.hub.accounts.suspend(account, suspended=True)
    refused(await browser.ask("GET", ME), 401, "account_suspended")
    assert (await browser.get(SESSION))["handle"] is None
    again = await Browser(hub.port).ask("POST", SESSION, {"token": ada.token})
    refused(again, 401, "account_suspended")
    refused(await Browser(hub.port).enter(code), 401, "account_suspended")


@pytest.mark.settings(log={"requests": "all"})
async def test_the_secrets_of_sessions_are_in_no_log(hub, ada, caplog):
    caplog.set_level("DEBUG")
    browser = await Browser(hub.port).sign_in(ada.token)
    await browser.enter(await code_of(ada))
    await browser.ask("DELETE", SESSION)
    logged = json.dumps([str(vars(record)) for record in caplog.records])
    for word in ("browser.signed_in", "browser.signed_out"):
        assert word in logged
    assert not any(word in logged for word in ("sk_", "bs_", "oc_"))
