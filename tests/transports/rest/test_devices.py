"""A program without a browser is connected: it shows a code, and a person decides elsewhere."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

import pytest

from folkmoot.accounts.credentials import USER_ALPHABET
from tests.transports.rest.support import done
from tests.transports.rest.test_apps import App
from tests.transports.rest.test_sessions import Browser

PATH = "/v1/device-authorization"
GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class Device(App):
    """A program on a device, as the hub's endpoints see it."""

    async def begin(self, **members):
        self.codes = done(await self.ask("/device_authorization", **members), 200)
        return self

    async def poll(self, **members):
        given = {"device_code": self.codes["device_code"], **members}
        return await self.ask("/token", grant_type=GRANT, **given)

    async def refused(self, **members):
        answer = await self.poll(**members)
        assert self.codes["device_code"] not in answer.text
        return answer.status, answer.json()["error"]


@pytest.fixture
async def device(hub):
    app = await Device(hub).register(redirect_uris=[], grant_types=[GRANT, "refresh_token"])
    return await app.begin()


@pytest.fixture
async def browser(hub, ada):
    return await Browser(hub.port).sign_in(ada.token)


async def shown(browser, code):
    return await browser.ask("GET", f"{PATH}?{urlencode({'user_code': code})}")


async def decide(browser, code, allow=True, scopes=("mail.read", "account.read"), **headers):
    given = {"user_code": code, "allow": allow, "scopes": list(scopes)}
    return await browser.ask("POST", PATH, given, **headers)


async def test_a_device_is_allowed_works_renews_is_listed_and_is_disconnected(hub, device, browser):
    server = await device.metadata("/.well-known/oauth-authorization-server")
    assert server["device_authorization_endpoint"] == f"{device.issuer}/device_authorization"
    assert GRANT in server["grant_types_supported"]
    code = device.codes["user_code"]
    assert device.codes["verification_uri"] == f"{device.issuer}/device"
    assert device.codes["verification_uri_complete"].endswith(f"/device?user_code={code}")
    assert set(code) <= {*USER_ALPHABET, "-"}
    assert await device.refused() == (400, "authorization_pending")
    typed = f" {code.lower().replace('-', ' ')}"
    asked = done(await shown(browser, typed), 200)
    assert (asked["name"], asked["handle"], asked["sent_to"]) == ("Claude", "ada", "")
    assert done(await decide(browser, typed), 200) == {"allowed": True}
    tokens = done(await device.poll(), 200)
    assert tokens["scope"] == "account.read mail.read"
    assert "ada" in (await device.call(tokens["access_token"])).text
    more = done(await device.refresh(tokens["refresh_token"]), 200)
    listed = (await browser.get("/v1/me/credentials"))["tokens"]
    (grant,) = (each for each in listed if each["kind"] == "device")
    done(await browser.ask("DELETE", f"/v1/me/credentials/{grant['id']}"), 204)
    assert (await device.call(more["access_token"])).status == 401


async def test_a_device_code_is_good_once(device, browser):
    done(await decide(browser, device.codes["user_code"]), 200)
    answers = await asyncio.gather(*(device.poll() for _ in range(5)))
    assert sorted(answer.status for answer in answers) == [200, 400, 400, 400, 400]
    assert await device.refused() == (400, "invalid_grant")


async def test_another_apps_device_code_is_none(hub, device, browser):
    done(await decide(browser, device.codes["user_code"]), 200)
    other = await Device(hub).register(client_name="Other")
    other.codes = device.codes
    assert await other.refused() == (400, "invalid_grant")
    for code in ("dc_" + "0" * 64, "", "x", device.codes["user_code"]):
        assert (await device.refused(device_code=code))[1] in {"invalid_grant", "invalid_request"}
    done(await device.poll(), 200)


async def test_a_device_that_asks_too_often_is_slowed_down(device, browser):
    assert await device.refused() == (400, "authorization_pending")
    for _ in range(14):
        assert await device.refused() == (400, "slow_down")
    done(await decide(browser, device.codes["user_code"]), 200)
    done(await device.poll(), 200)


async def test_a_device_hears_that_it_was_refused(device, browser):
    assert done(await decide(browser, device.codes["user_code"], allow=False), 200) == {
        "allowed": False
    }
    assert await device.refused() == (400, "access_denied")
    assert (await decide(browser, device.codes["user_code"])).status == 403


@pytest.mark.settings(rate_limits="on", rates={"sign_in_per_hour": 3})
async def test_a_user_code_is_not_guessed_by_an_account_or_from_an_address(hub, device, browser):
    for guess in ("BBBB-BBBB", "x", "CCCC-CCCC"):
        answer = await shown(browser, guess)
        assert (answer.status, answer.json()["error"]["code"]) == (403, "device_code_invalid")
    assert (await shown(browser, device.codes["user_code"])).status == 429
    assert (await decide(browser, device.codes["user_code"])).status == 429
    assert await device.refused() == (400, "authorization_pending")


async def test_only_a_person_at_the_hubs_own_page_lets_a_device_in(hub, device, ada, browser):
    code = device.codes["user_code"]
    given = {"user_code": code, "allow": True, "scopes": ["mail.read"]}
    assert (await ada.ask("POST", PATH, given)).status == 403
    assert (await ada.ask("GET", f"{PATH}?user_code={code}")).status == 403
    assert (await decide(browser, code, folkmoot_page=None)).status == 403
    assert (await decide(Browser(hub.port), code)).status == 401
    agent = await hub.person("robot", account_type="agent")
    theirs = await Browser(hub.port).sign_in(agent.token)
    assert (await decide(theirs, code)).status == 403
    for scopes in (["account"], ["*"], ["mail.delete"], []):
        assert (await decide(browser, code, scopes=scopes)).status == 400
    assert await device.refused() == (400, "authorization_pending")
    page = await device.send("GET", "/device")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    led = await Device(hub, "127.0.0.1").send("GET", f"/device?user_code={code}")
    assert led.headers["location"] == f"{device.issuer}/device?user_code={code}"


async def test_a_device_that_was_allowed_by_a_session_that_ended_gets_nothing(device, browser):
    done(await decide(browser, device.codes["user_code"]), 200)
    done(await browser.ask("DELETE", "/v1/session"), 204)
    assert await device.refused() == (400, "invalid_grant")


@pytest.mark.settings(rate_limits="on")
async def test_one_address_gets_only_so_many_codes_and_none_for_another_resource(hub, device):
    answer = await device.ask("/device_authorization", resource="https://other.example/mcp")
    assert answer.json()["error"] == "invalid_target"
    assert (await device.ask("/device_authorization", scope="operate")).status == 400
    assert (await device.ask("/device_authorization", client_id="other")).status == 401
    seen = {(await device.ask("/device_authorization")).status for _ in range(100)}
    assert seen == {200, 429}
