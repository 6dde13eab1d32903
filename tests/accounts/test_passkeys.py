"""Passkeys: what opens an account, what does not, and that a person was there for a decision."""

from __future__ import annotations

import asyncio
import json

import pytest
from fido2.cose import ES256

from folkmoot.accounts.limits import MAX_PASSKEYS, PASSKEY_SECONDS, PASSKEY_SIGN_IN_SECONDS
from folkmoot.accounts.model import Decision
from folkmoot.accounts.passkeys import Site, origin_of
from folkmoot.core import errors as e
from tests.accounts.support import refused
from tests.passkeys import LOCAL, PRESENT, VERIFIED, Authenticator, bomb, encoded

ASK = Decision("ask-1", {"name": "files/delete", "arguments": {"path": "/a", "force": True}}, "yes")


class Device:
    """A browser of someone's, with an authenticator."""

    def __init__(self, world, made, base=LOCAL):
        self.world, self.made, self.base = world, made, base
        self.keys, self.accounts = world.accounts.passkeys, world.accounts
        self.account, self.token_id = made.account, made.credential_id
        self.authenticator = Authenticator(base, Site.at(base).rp_id)

    async def open(self, **options):
        opened = await self.accounts.browsers.open(self.account.id, self.token_id, **options)
        self.session = opened.credential.id
        return self

    async def begin(self):
        return await self.keys.begin_adding(self.account, self.session, self.base)

    async def add(self, name="Laptop", begun=None, answer=None, **lies):
        begun = begun or await self.begin()
        answer = answer or self.authenticator.make(begun.options, **lies)
        given = self.account, self.session, self.base, name, begun.ticket, answer
        return await self.keys.add(*given)

    async def sign_in(self, begun=None, **lies):
        begun = begun or self.keys.begin_sign_in(self.base)
        answer = self.authenticator.sign(begun.options, **lies)
        return await self.keys.sign_in(self.base, begun.ticket, answer)


@pytest.fixture
async def device(world, new):
    """Alice's, who has just signed in there."""
    return await Device(world, new).open()


@pytest.fixture
async def bobs(world):
    there = await Device(world, await world.register("bobby")).open()
    await there.add()
    return there


async def test_a_person_adds_passkeys_signs_in_renames_and_removes_them(world, new, device):
    laptop = await device.add(" Laptop ")
    assert (laptop.name, laptop.rp_id, laptop.used_at) == ("Laptop", "localhost", None)
    world.clock.advance(100)
    assert (await device.sign_in()).id == new.account.id
    second = await Device(world, new).open()
    begun = await second.begin()
    assert begun.options["excludeCredentials"] == [
        {"type": "public-key", "id": encoded(device.authenticator.id)}
    ]
    phone = await second.add("Phone", begun)
    assert (await second.sign_in()).id == new.account.id
    found = await device.keys.list(new.account)
    assert [(each.name, each.used_at is not None) for each in found] == [
        ("Laptop", True),
        ("Phone", True),
    ]
    assert (await device.keys.rename(new.account, phone.id, "Old phone")).name == "Old phone"
    await device.keys.remove(new.account, laptop.id)
    await refused(device.sign_in(), e.PasskeyInvalid)
    assert (await second.sign_in()).id == new.account.id
    belongings = await world.accounts.belongings(new.account.id)
    assert [each.name for each in belongings.passkeys] == ["Old phone"]


async def test_what_browsers_are_asked_demands_verification_and_names_nobody(device, bobs):
    made = (await device.begin()).options
    assert made["authenticatorSelection"] == {
        "residentKey": "required",
        "requireResidentKey": True,
        "userVerification": "required",
    }
    asked = device.keys.begin_sign_in(LOCAL).options
    assert (asked["userVerification"], asked["rpId"]) == ("required", "localhost")
    assert asked["allowCredentials"] == []


LIES = {
    "other origin": {"origin": "http://localhost:9999"},
    "other host": {"origin": "http://evil.localhost:8420"},
    "other rp id": {"rp_id": "evil.example"},
    "no user verification": {"flags": PRESENT},
    "nobody present": {"flags": VERIFIED},
    "another challenge": {"challenge": encoded(b"x" * 32)},
    "another type": {"type": "payment.get"},
    "in a frame of another site": {"framed": True},
}


@pytest.mark.parametrize("lies", LIES.values(), ids=LIES)
@pytest.mark.requirement("sign-in.passkey-verified")
async def test_an_answer_that_lies_makes_no_passkey_and_opens_nothing(device, lies):
    await refused(device.add(**lies), e.PasskeyInvalid)
    assert await device.keys.list(device.account) == []
    await device.add()
    await refused(device.sign_in(**lies), e.PasskeyInvalid)


async def test_another_accounts_key_opens_nothing(device, bobs):
    await device.add()
    await refused(device.sign_in(key=bobs.authenticator.key), e.PasskeyInvalid)
    await refused(device.sign_in(user=bobs.authenticator.user), e.PasskeyInvalid)
    device.authenticator.id = bobs.authenticator.id
    await refused(device.sign_in(), e.PasskeyInvalid)
    await refused(device.add(), e.PasskeyInvalid)
    key = (await bobs.keys.list(bobs.account))[0]
    await refused(bobs.keys.rename(device.account, key.id, "Mine"), e.PasskeyNotFound)
    await refused(bobs.keys.remove(device.account, key.id), e.PasskeyNotFound)


async def test_a_passkey_that_nobody_has_is_refused_after_the_same_work(device, bobs, monkeypatch):
    """How long an answer takes tells nobody which passkeys there are."""
    verified = []

    def verify(key, message, signature):
        verified.append(key)
        real(key, message, signature)

    real = ES256.verify
    monkeypatch.setattr(ES256, "verify", verify)
    unknown = await Device(device.world, bobs.made).open()
    for each, lies in ((unknown, {}), (bobs, {"key": unknown.authenticator.key})):
        verified.clear()
        await refused(each.sign_in(**lies), e.PasskeyInvalid)
        assert len(verified) == 1
    for lies in LIES.values():
        verified.clear()
        await refused(unknown.sign_in(**lies), e.PasskeyInvalid)
        with_unknown = len(verified)
        await refused(bobs.sign_in(**lies), e.PasskeyInvalid)
        assert len(verified) == 2 * with_unknown


async def test_a_replay_is_refused_also_of_twenty_at_once(device):
    begun = await device.begin()
    answer = device.authenticator.make(begun.options)
    await device.add(begun=begun, answer=answer)
    await refused(device.add(begun=begun, answer=answer), e.PasskeyInvalid)
    begun = device.keys.begin_sign_in(LOCAL)
    answer = device.authenticator.sign(begun.options)
    tries = [device.keys.sign_in(LOCAL, begun.ticket, answer) for _ in range(20)]
    came = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(each, e.PasskeyInvalid) for each in came) == 19


async def test_an_answer_that_comes_too_late_or_with_another_ticket_is_refused(world, device):
    begun = await device.begin()
    other = device.keys.begin_sign_in(LOCAL)
    for ticket in (other.ticket, begun.ticket[:-2], "", "x" * 5_000, "é"):
        swapped = type(begun)(ticket, begun.options)
        await refused(device.add(begun=swapped), e.PasskeyInvalid)
    world.clock.advance(PASSKEY_SECONDS)
    await refused(device.add(begun=begun), e.PasskeyInvalid)
    await device.add()
    await refused(device.sign_in(other), e.PasskeyInvalid)
    await device.sign_in()
    world.clock.advance(PASSKEY_SECONDS)
    await device.sign_in()
    spent = await world.rows("SELECT COUNT(*) FROM spent")
    assert spent == [(1,)], "what is too old anyway is not kept"


async def test_bytes_of_a_stranger_are_refused_whatever_they_are(device):
    begun = await device.begin()
    good = json.loads(device.authenticator.make(begun.options))
    response = good["response"]
    for answer in (
        "",
        "[]",
        "{",
        '{"id": 3}',
        "x" * 30_000,
        json.dumps(good | {"id": "x" * 2_000}),
        json.dumps(good | {"rawId": encoded(b"other")}),
        json.dumps(good | {"response": response | {"attestationObject": bomb()}}),
        json.dumps(good | {"response": response | {"attestationObject": "%%%"}}),
        json.dumps(good | {"response": response | {"clientDataJSON": encoded(b"\xff{")}}),
        json.dumps(good | {"response": {"clientDataJSON": response["clientDataJSON"]}}),
    ):
        await refused(device.add(begun=begun, answer=answer or " "), e.PasskeyInvalid)
        await refused(device.keys.sign_in(LOCAL, begun.ticket, answer), e.PasskeyInvalid)
    await device.add(begun=begun)


async def test_who_has_a_passkey_here_cannot_be_found_out(world, device, bobs):
    """Enumeration: nobody, a wrong key and a removed account are told alike."""
    stranger = Device(world, await world.register("stranger"))
    wrong = await refused(bobs.sign_in(key=device.authenticator.key), e.PasskeyInvalid)
    assert await refused(stranger.sign_in(), e.PasskeyInvalid) == wrong
    await world.accounts.delete(bobs.account)
    assert await refused(bobs.sign_in(), e.PasskeyInvalid) == wrong
    assert await world.rows("SELECT * FROM passkeys") == []


async def test_a_suspended_account_is_not_opened(world, bobs):
    await world.accounts.suspend(bobs.account, suspended=True)
    await refused(bobs.sign_in(), e.AccountSuspended)


async def test_a_copied_passkey_is_noticed_by_its_count(device):
    await device.add(counts=5)
    await device.sign_in(counts=6)
    await refused(device.sign_in(counts=6), e.PasskeyInvalid)
    await refused(device.sign_in(counts=0), e.PasskeyInvalid)
    await device.sign_in(counts=9)


async def test_the_last_passkey_is_removed_only_for_another_way_in(world, new, device, bobs):
    key = await device.add()
    token = await world.register("third")
    for given in ("", "sk_" + "0" * 64, token.token, token.recovery_code, "x" * 200):
        said = await refused(device.keys.remove(new.account, key.id, given), e.ConfirmationInvalid)
        assert "recovery code" in said
    await device.keys.remove(new.account, key.id, f" {new.token} ")
    key = await device.add()
    await device.keys.remove(new.account, key.id, new.recovery_code)
    assert await device.keys.list(new.account) == []


async def test_recovering_ends_every_passkey(world, new, device):
    await device.add()
    await world.accounts.recover("alice", new.recovery_code)
    assert await device.keys.list(new.account) == []
    await refused(device.sign_in(), e.PasskeyInvalid)
    await refused(device.add(), e.TokenInvalid)


async def test_only_a_person_who_has_just_signed_in_with_everything_adds_one(world, new, device):
    keys, late = world.accounts.passkeys, PASSKEY_SIGN_IN_SECONDS
    create = world.accounts.authentication.create
    narrow = (await create(new.account, scope="account account.read")).credential
    short = (await create(new.account, expires_in=3_600)).credential
    await refused(keys.begin_adding(new.account, new.credential_id, LOCAL), e.AccessDenied)
    for token in (narrow, short):
        device.token_id = token.id
        await device.open()
        await refused(device.begin(), e.AccessDenied)
    device.token_id = new.credential_id
    await device.open()
    begun = await device.begin()
    world.clock.advance(late)
    await refused(device.begin(), e.ConfirmationInvalid, "Sign out and in again")
    await refused(device.add(begun=begun), e.PasskeyInvalid)
    # A browser that was left open can open another one, which is no younger.
    device.token_id = device.session
    await device.open()
    await refused(device.begin(), e.ConfirmationInvalid)
    agent = await world.accounts.register("robot", account_type="agent")
    await refused((await Device(world, agent).open()).begin(), e.AccessDenied)


async def test_an_account_has_so_many_passkeys_with_names_on_one_line(world, new, device):
    for name in ("x" * 101, "a\nb"):
        await refused(device.add(name), e.ArgumentInvalid)
    named = await (await Device(world, new).open(label="Firefox on Linux")).add("  ")
    assert named.name == "Firefox on Linux"
    for name in ("", "  ", "x" * 101, "a\nb"):
        await refused(device.keys.rename(new.account, named.id, name), e.ArgumentInvalid)
    for _ in range(MAX_PASSKEYS - 1):
        await (await Device(world, new).open()).add()
    await refused((await Device(world, new).open()).begin(), e.QuotaExceeded, "Remove one")


@pytest.mark.parametrize(
    ("base", "rp_id"),
    [
        ("https://Hub.example", "hub.example"),
        ("https://hub.example:8443", "hub.example"),
        ("http://localhost:8420", "localhost"),
        ("http://folkmoot.localhost:1", "folkmoot.localhost"),
        ("http://hub.example", None),
        ("http://127.0.0.1:8420", None),
        ("https://10.0.0.7", None),
        ("https://[::1]:8420", None),
        ("http://notlocalhost", None),
    ],
)
def test_passkeys_need_a_name_and_tls_or_this_computer(base, rp_id):
    if rp_id is None:
        with pytest.raises(e.PasskeyUnusable, match="need https"):
            Site.at(base)
    else:
        assert Site.at(base) == Site(base.lower(), rp_id)


async def test_a_passkey_of_one_name_of_the_hub_opens_nothing_at_another(world, device):
    await device.add()
    device.base = "https://hub.example"
    device.authenticator.origin, device.authenticator.rp_id = device.base, "hub.example"
    await refused(device.sign_in(), e.PasskeyInvalid)


async def present(device, begun, decision=ASK, account=None, base=LOCAL, **lies):
    answer = device.authenticator.sign(begun.options, **lies)
    account = account or device.account
    await device.keys.check_presence(account, base, decision, begun.ticket, answer)


async def test_a_decision_is_signed_by_a_person_who_is_there(device):
    begun = device.keys.begin_presence(device.account, LOCAL, ASK)
    await refused(begun, e.PasskeyNotFound, "Add one")
    await device.add()
    begun = await device.keys.begin_presence(device.account, LOCAL, ASK)
    assert [each["id"] for each in begun.options["allowCredentials"]] == [
        encoded(device.authenticator.id)
    ]
    same = Decision("ask-1", json.loads(json.dumps(ASK.arguments, sort_keys=True)), "yes")
    await present(device, begun, same)
    await refused(present(device, begun), e.PasskeyInvalid)


@pytest.mark.parametrize(
    "decision",
    [
        Decision("ask-2", ASK.arguments, "yes"),
        Decision("ask-1", {**ASK.arguments, "name": "files/read"}, "yes"),
        Decision("ask-1", ASK.arguments, "no"),
        Decision("ask-1", None, "yes"),
    ],
    ids=["another ask's", "other arguments", "another verdict", "no arguments"],
)
@pytest.mark.requirement("sign-in.presence")
async def test_what_was_signed_for_one_decision_is_good_for_no_other(device, decision):
    await device.add()
    begun = await device.keys.begin_presence(device.account, LOCAL, ASK)
    await refused(present(device, begun, decision), e.PasskeyInvalid)
    await present(device, begun)


@pytest.mark.parametrize("lies", LIES.values(), ids=LIES)
async def test_a_presence_that_lies_decides_nothing(device, lies):
    await device.add()
    begun = await device.keys.begin_presence(device.account, LOCAL, ASK)
    await refused(present(device, begun, **lies), e.PasskeyInvalid)


async def test_presence_is_of_the_one_who_decides_there_and_then(world, device, bobs):
    await device.add()
    begun = await device.keys.begin_presence(device.account, LOCAL, ASK)
    await refused(present(bobs, begun, account=device.account), e.PasskeyInvalid)
    await refused(present(device, begun, account=bobs.account), e.PasskeyInvalid)
    await refused(present(device, begun, base="http://localhost:1"), e.PasskeyInvalid)
    # A second attempt is another challenge, and signing in is no decision.
    again = await device.keys.begin_presence(device.account, LOCAL, ASK)
    assert again.options["challenge"] != begun.options["challenge"]
    await refused(present(device, type(again)(again.ticket, begun.options)), e.PasskeyInvalid)
    await refused(device.sign_in(begun), e.PasskeyInvalid)
    world.clock.advance(PASSKEY_SECONDS)
    await refused(present(device, begun), e.PasskeyInvalid)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Hub.example:443/", "https://hub.example"),
        ("https://hub.example:8443", "https://hub.example:8443"),
        ("http://localhost:80", "http://localhost"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("http://[::1]:8420", "http://[::1]:8420"),
    ],
)
def test_an_origin_is_spelt_as_browsers_send_it(url, origin):
    assert origin_of(url) == origin
