from __future__ import annotations

import base64
from typing import Any

import pytest

from folkmoot.core import errors as e
from tests.accounts.support import DAY, START, refused, world

KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.mark.requirement("tool.set-profile.only-given")
async def test_only_the_fields_that_are_given_change_and_the_time_with_them(tmp_path):
    async with world(tmp_path) as here:
        new = await here.register("alice")
        before = new.account
        here.clock.advance(DAY)
        changes: dict[str, Any] = {
            "display_name": "Alice Wonderland",
            "bio": "Curiouser\nand curiouser \U0001f407",
            "privacy": "contacts_only",
            "status": "online",
            "client_public_key": KEY,
        }
        for field, value in changes.items():
            after = await here.accounts.set_profile(before, **{field: value})
            for name in before.__struct_fields__:
                expected = value if name == field else getattr(before, name)
                assert name == "updated_at" or getattr(after, name) == expected
            assert after.updated_at == START + DAY
            assert await here.accounts.authenticate(new.token) == after
            before = after
        emptied = await here.accounts.set_profile(before, bio="", status="", client_public_key="")
        assert (emptied.bio, emptied.status, emptied.client_public_key) == ("", "", None)


@pytest.mark.requirement("tool.set-profile.nothing", "tool.set-profile.invalid-privacy")
async def test_a_profile_refuses_nothing_at_all_and_an_unknown_privacy(world, alice):
    await refused(world.accounts.set_profile(alice), e.NothingToUpdate, r"^No fields to update\.$")
    for privacy in ("", "PUBLIC", "friends", "public\n"):
        with pytest.raises(e.PrivacyInvalid, match=r"^Invalid privacy level\.$"):
            await world.accounts.set_profile(alice, bio="kept out too", privacy=privacy)
    assert await world.accounts.account(alice.id) == alice


@pytest.mark.requirement("tool.set-profile.lengths", "crypto.bad-field-named")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("display_name", ""),
        ("display_name", "x" * 101),
        ("display_name", "x" * 1_000_000),
        ("bio", "x" * 501),
        ("status", "x" * 101),
        ("bio", "NUL \0"),
        ("client_public_key", KEY[:-4]),
    ],
)
async def test_a_field_out_of_its_limits_is_named_and_changes_nothing(world, alice, field, value):
    fields: dict[str, Any] = {"status": "fine", field: value}
    await refused(world.accounts.set_profile(alice, **fields), e.ArgumentInvalid, field)
    assert await world.accounts.account(alice.id) == alice


@pytest.mark.requirement("tool.change-handle.output")
async def test_a_changed_handle_keeps_the_account_and_is_seen_by_its_token_at_once(world, new):
    assert await world.accounts.authenticate(new.token) == new.account
    change = await world.accounts.change_handle(new.account, "alice_v2")
    seen = await world.accounts.authenticate(new.token)
    assert seen == change.account
    assert seen is not None
    assert (seen.id, seen.handle, seen.display_name) == (new.account.id, "alice_v2", "alice")


async def test_what_a_client_reads_in_a_box_is_known_as_long_as_its_key_is(world, alice):
    for wrong in (["a"] * 9, ["two words"], [""], ["x" * 41], ["Upper"]):
        with pytest.raises(e.ArgumentInvalid, match="payload_formats"):
            await world.accounts.set_profile(alice, payload_formats=wrong)
    formats = ["mail-1", "mail-2", "mail-1"]
    told = await world.accounts.set_profile(alice, client_public_key=KEY, payload_formats=formats)
    assert told.payload_formats == "mail-1 mail-2"
    same = await world.accounts.set_profile(alice, client_public_key=KEY, bio="Here.")
    assert same.payload_formats == "mail-1 mail-2"
    assert (await world.accounts.set_profile(alice, client_public_key="")).payload_formats == ""
