"""Programs on devices that wait for their person, as the store keeps them."""

from __future__ import annotations

import asyncio

import pytest

from folkmoot.accounts import limits
from folkmoot.accounts.model import AppClient
from folkmoot.core import errors as e
from tests.accounts.support import refused
from tests.apps import browser

CLIENT = AppClient("app", "Assistant", "", "http://127.0.0.1/mcp")


@pytest.fixture
async def ann(world):
    return await world.join("ann")


async def waiting(world):
    return len(await world.rows("SELECT hash FROM app_grants"))


async def test_a_device_that_nobody_allowed_in_time_hears_so_and_is_forgotten(world, ann):
    devices = world.accounts.devices
    codes = await devices.begin(CLIENT, "mail.read")
    by = await browser(world.accounts, ann)
    world.clock.advance(limits.DEVICE_CODE_SECONDS)
    await refused(devices.find(codes.user_code), e.DeviceCodeInvalid)
    await refused(devices.answer(ann, by, codes.user_code, "mail.read"), e.DeviceCodeInvalid)
    with pytest.raises(e.OAuthError) as told:
        await devices.exchange(codes.device_code, client_id="app")
    assert told.value.error == "expired_token"
    await world.accounts.authentication.upkeep()
    assert await waiting(world) == 1
    world.clock.advance(limits.DEVICE_CODE_SECONDS)
    await world.accounts.authentication.upkeep()
    assert await waiting(world) == 0


async def test_a_device_waits_longer_each_time_it_asks_too_early_but_not_for_ever(world):
    devices = world.accounts.devices
    codes = await devices.begin(CLIENT, "mail.read")

    async def poll(seconds):
        world.clock.advance(seconds)
        with pytest.raises(e.OAuthError) as told:
            await devices.exchange(codes.device_code, client_id="app")
        return told.value.error

    told = [await poll(seconds) for seconds in (0, 5, 4, 9, 15, 14, 20)]
    early, pending = "slow_down", "authorization_pending"
    assert told == [pending, pending, early, early, pending, early, pending]
    assert {await poll(0) for _ in range(20)} == {early}
    assert await poll(60) == pending


async def test_nothing_secret_is_stored_and_an_erased_account_leaves_none(world, ann, caplog):
    devices = world.accounts.devices
    codes = await devices.begin(CLIENT, "mail.read")
    by = await browser(world.accounts, ann)
    await devices.answer(ann, by, codes.user_code, "mail.read")
    stored = repr(await world.rows("SELECT * FROM app_grants")) + repr(codes) + caplog.text
    for secret in (codes.device_code, codes.user_code, codes.user_code.replace("-", "")):
        assert secret not in stored
    await world.accounts.delete(ann)
    assert await waiting(world) == 0
    await refused(devices.exchange(codes.device_code, client_id="app"), e.GrantInvalid)


async def test_only_so_many_devices_wait(world, monkeypatch):
    monkeypatch.setattr("folkmoot.accounts.devices.MAX_DEVICE_CODES", 2)
    for _ in range(2):
        await world.accounts.devices.begin(CLIENT, "mail.read")
    with pytest.raises(e.OAuthError) as told:
        await world.accounts.devices.begin(CLIENT, "mail.read")
    assert (told.value.error, told.value.status) == ("temporarily_unavailable", 503)


async def test_a_device_that_asks_once_more_gets_nothing_and_keeps_what_it_has(world, ann):
    devices, by = world.accounts.devices, await browser(world.accounts, ann)
    codes = await devices.begin(CLIENT, "mail.read")
    await devices.answer(ann, by, codes.user_code, "mail.read")
    tries = [devices.exchange(codes.device_code, client_id="app") for _ in range(3)]
    found = await asyncio.gather(*tries, return_exceptions=True)
    [pair] = [each for each in found if not isinstance(each, e.GrantInvalid)]
    await refused(devices.find(codes.user_code), e.DeviceCodeInvalid)
    assert [app.kind for app in await world.accounts.apps.list(ann)] == ["device"]
    assert (await world.accounts.apps.refresh(pair.refresh_token, client_id="app")).scope
