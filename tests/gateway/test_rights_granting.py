"""What an operator grants and revokes while the hub runs, types wrong, and looks at."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.capability import capability
from folkmoot.core.kinds import parse
from folkmoot.core.limits import MAX_CAPABILITIES
from folkmoot.gateway import grants
from folkmoot.gateway import grants as granting
from folkmoot.gateway.configured_rights import compiled, fault_at
from folkmoot.gateway.grants import Granting
from folkmoot.names.safe_names import full_pattern
from tests.gateway.rights_support import (
    CALL,
    FILES,
    GITHUB,
    READ_FILES,
    SEARCH,
    office,
    spec,
)
from tests.store.support import Gate

KIND = f"{CALL}:files:read_file"
MAKES = "'folkmoot invite --for harry'"
GRANTS = {"gina": (READ_FILES,), "@ops": (f"{CALL}:github:*",)}
OPS = spec(FILES, GITHUB, SEARCH, groups={"ops": ("gina",)}, grants=GRANTS)


async def test_a_grant_holds_from_the_next_call_on_and_after_a_restart_until_it_is_revoked(hub):
    gina, harry = await hub.here.join("gina"), await hub.here.join("harry")
    told: list[str] = []
    hub.here.store.bus.listen("grants.*", lambda event: told.append(event.subject))
    assert hub.may(gina, KIND) == [False]
    made = await hub.granting.grant("@Gina", ["files:read_*", READ_FILES, "files://notes/*"])
    notes = "mcp.request.resources/*:files://notes/*"
    said = (made.handle, made.granted, made.already, made.warnings)
    assert said == ("gina", [READ_FILES, notes], [], [])
    assert hub.may(gina, KIND, "mcp.request.resources/read:files://notes/a") == [True, True]
    assert hub.may(harry, KIND) == [False]
    assert (await hub.granting.grant("gina", [READ_FILES])).already == [READ_FILES]
    assert (await hub.again(spec(FILES))).of(gina)[1].allows(parse(KIND))
    changed = (await hub.accounts.change_handle(gina, "gina2")).account
    assert hub.may(changed, KIND) == [True]
    assert (await hub.granting.revoke("gina2", ["files:read_*"])).revoked == [READ_FILES]
    assert hub.may(changed, KIND) == [False]
    assert (await hub.granting.revoke("gina2", [], everything=True)).revoked == [notes]
    assert (await hub.granting.revoke("gina2", [], everything=True)).revoked == []
    assert set(told) == {f"grants.{gina.id}"}


async def test_the_name_of_a_backend_alone_stands_for_all_that_it_offers(hub):
    gina = await hub.here.join("gina")
    made = await hub.granting.grant("gina", ["files"])
    assert (len(made.granted), made.warnings) == (5, [])
    kinds = (KIND, "mcp.request.prompts/get:files:a", "mcp.request.resources/read:files://a/b")
    assert hub.may(gina, *kinds, f"{CALL}:files2:a") == [True, True, True, False]
    assert (await hub.granting.revoke("gina", ["files"])).revoked == made.granted
    assert hub.may(gina, *kinds) == [False, False, False]
    await hub.granting.grant("gina", ["files:*"])
    assert (await hub.granting.revoke("gina", ["files"])).revoked == [f"{CALL}:files:*"]
    # What is no backend's name is a pattern, as it is written.
    assert (await hub.granting.grant("gina", ["github"])).granted == ["github"]


@pytest.mark.settings(given=spec(SEARCH))
async def test_a_deny_can_be_granted_and_takes_away_what_everyone_has(hub):
    robot = (await hub.accounts.register("robot", account_type="agent")).account
    await hub.granting.grant("robot", ["!msg/send", "!search:*"])
    kinds = [f"{CALL}:{name}" for name in ("msg/send", "msg/inbox", "search:find")]
    assert hub.may(robot, *kinds) == [False, True, False]
    await hub.granting.grant("robot", ["*"])
    assert hub.may(robot, *kinds) == [False, True, False], "a deny wins"


async def test_what_cannot_be_granted_is_refused_whole_and_says_why(tmp_path):
    refused = {
        "nobody": "Nobody has the handle @nobody.",
        "a b": "'a b' is not a valid handle.",
        "gina": "@gina is now @gina2. Use that handle.",
        "harry": f"Nobody has the handle @harry yet. {MAKES} creates an invite for it.",
    }
    async with office(tmp_path, spec(FILES, grants={"harry": (READ_FILES,)})) as hub:
        await hub.accounts.change_handle(await hub.here.join("gina"), "gina2")
        for handle, sentence in refused.items():
            with pytest.raises(e.UserNotFound) as told:
                await hub.granting.grant(handle, ["files:*"])
            assert told.value.message == sentence
        with pytest.raises(e.CapabilityReserved, match=r"^system\.\* belongs to the gateway; nob"):
            await hub.granting.grant("gina2", ["files:*", "system.welcome"])
        assert hub.rights.granted == {}


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        ("MCP.request", 1),
        ("!mcp.Request", 6),
        ("mcp.request.tools call", 18),
        ("mcp..tools", 5),
        ("", 1),
        ("README.md", 1),
        ("mcp.request:x", 12),
        ("mcp.request.tools/call:", 24),
        ("mcp.request.tools/call:a\nb", 25),
        ("!files:a\x00b", 32),
    ],
)
def test_a_wrong_pattern_is_told_with_the_place(pattern, position):
    with pytest.raises(e.PatternSyntax) as told:
        compiled(pattern)
    assert told.value.message.endswith(f"The error is at character {position}.")
    assert told.value.data["position"] == position


@given(st.text("mcp.request/tools:*!-A é\n", max_size=40))
def test_whatever_is_typed_is_a_pattern_or_wrong_at_some_character_of_it(text):
    full = full_pattern(text)
    try:
        capability(full)
    except e.PatternSyntax:
        assert 1 <= fault_at(full) <= len(full) + 1
    except e.FolkmootError:
        pass


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("files:read_*", f"{CALL}:files:read_*"),
        ("!files:*", f"!{CALL}:files:*"),
        ("files://notes/*", "mcp.request.resources/*:files://notes/*"),
        ("!msg/send", f"!{CALL}:msg/send"),
        (READ_FILES, READ_FILES),
        ("*", "*"),
        ("my/tool", "my/tool"),
    ],
)
def test_a_short_form_stands_for_one_pattern_and_no_pattern_is_a_short_form(short, full):
    assert full_pattern(short) == full
    assert full_pattern(full) == full


@pytest.mark.requirement("gateway.grants-as-shown")
async def test_a_grant_may_be_written_as_clients_list_it_and_is_kept_by_its_canonical_name(hub):
    cut = "files_" + "a" * 49 + "_01234567"
    names = {cut: "files:" + "a" * 80}
    spelled = {
        "files_read_*": READ_FILES,
        "!files_write_file": f"!{CALL}:files:write_file",
        "msg_send": f"{CALL}:msg/send",
        cut: f"{CALL}:files:{'a' * 80}",
        "files://file/-/-/srv/*": "mcp.request.resources/*:files://file///srv/*",
        "!ui://files/view*": "!mcp.request.resources/*:files://ui//view*",
        "mcp.request.resources/read:files://demo/-/x": (
            "mcp.request.resources/read:files://demo//x"
        ),
    }
    gina = await hub.here.join("gina")
    granting = Granting(hub.rights, hub.here.store, hub.clock, hub.accounts, canonical=names.get)
    made = await granting.grant("gina", list(spelled))
    assert (made.granted, made.warnings) == (list(spelled.values()), [])
    assert hub.may(gina, "mcp.request.resources/read:files://file///srv/a") == [True]
    with pytest.raises(e.PatternSyntax):
        await granting.grant("gina", ["other_read_file"])
    assert (await granting.revoke("gina", list(spelled))).revoked == list(spelled.values())


@pytest.mark.requirement("gateway.grants-as-shown")
async def test_a_grant_in_the_settings_may_have_a_uri_as_clients_are_shown_it(tmp_path):
    read = "mcp.request.resources/read"
    given = (f"{read}:files://file/-/-/srv/*", {"kind": f"!{read}:files://file/-/-/srv/a"})
    async with office(tmp_path, spec(FILES, grants={"gina": given})) as hub:
        gina = await hub.invited("gina")
        kinds = [f"{read}:files://file///srv/{name}" for name in ("a", "b")]
        assert hub.may(gina, *kinds) == [False, True]


@pytest.mark.settings(given=spec(FILES, GITHUB))
async def test_what_covers_nothing_is_granted_with_a_warning(hub):
    await hub.here.join("gina")
    made = await hub.granting.grant(
        "gina", ["fiels:*", "weather:*", "fiels", "chat.*", "files:*", "mcp.*", "!msg/send"]
    )
    assert len(made.granted) == 7
    assert made.warnings == [
        f"{CALL}:fiels:* covers nothing yet: no backend is called fiels; did you mean files?",
        f"{CALL}:weather:* covers nothing yet: no backend is called weather.",
        "fiels matches nothing that this hub offers.",
        "chat.* matches nothing that this hub offers.",
    ]


async def test_what_was_not_granted_is_not_revoked_and_it_is_told_where_it_is_from(tmp_path):
    reasons = {
        READ_FILES: "from [grants] in the settings file; change it there",
        f"{CALL}:github:*": "from the group ops in the settings file; change it there",
        f"{CALL}:search:*": "because the backend search is for everyone; deny it to take it away",
        f"{CALL}:msg/*": "as every account does; deny it to take it away",
    }
    async with office(tmp_path, OPS) as hub:
        gina = await hub.invited("gina")
        await hub.granting.grant("gina", ["files:write_file"])
        for pattern, reason in reasons.items():
            with pytest.raises(e.CommandInvalid) as told:
                await hub.granting.revoke("gina", ["files:write_file", pattern])
            assert told.value.message == f"Nothing was revoked: @gina has {pattern} {reason}."
        with pytest.raises(e.CommandInvalid, match="was not granted"):
            await hub.granting.revoke("gina", ["files:delete_file"])
        assert hub.may(gina, f"{CALL}:files:write_file") == [True]


async def test_nobody_is_granted_more_than_one_can_hold_nor_a_hub_more_than_it_keeps(
    hub, monkeypatch
):
    gina = await hub.here.join("gina")
    many = [f"files:t{number}" for number in range(MAX_CAPABILITIES)]
    with pytest.raises(e.TooManyCapabilities, match="@gina: At most 4,096"):
        await hub.granting.grant("gina", many)
    monkeypatch.setattr(granting, "MAX_GRANTS", 3)
    await hub.granting.grant("gina", many[:3])
    with pytest.raises(e.TooManyCapabilities, match="at most 3 grants"):
        await hub.granting.grant("gina", many[3:4])
    assert len(hub.rights.granted[gina.id]) == 3


async def test_an_operator_who_hangs_up_leaves_disk_and_memory_agreed(hub):
    gina, gate = await hub.here.join("gina"), Gate()
    hub.here.store.in_unit = gate
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(hub.granting.grant("gina", ["files:*"]))
        await gate.entered()
        asked.cancel()
        gate.open()
    assert asked.cancelled()
    assert await hub.here.rows("SELECT pattern FROM hub_grants") == [(f"{CALL}:files:*",)]
    assert hub.may(gina, f"{CALL}:files:x") == [True]


async def test_grants_revocations_and_invites_are_in_the_audit_log_and_no_code_is(hub, caplog):
    gina = await hub.here.join("gina")
    with caplog.at_level(logging.INFO, "folkmoot.audit"):
        await hub.granting.grant("gina", ["files:*"])
        await hub.granting.grant("gina", ["files:*"])
        await hub.granting.revoke("gina", ["files:*"])
        code = (await hub.granting.invite("harry", 60)).code
    records: list[Any] = caplog.records
    about = ("operator", "gina", gina.id, f"{CALL}:files:*")
    assert [(it.message, it.by, it.about, it.account, it.detail) for it in records] == [
        ("hub.grant", *about),
        ("hub.revoke", *about),
        ("account.invited", "operator", "harry", None, None),
    ]
    assert code not in caplog.text


async def test_everything_someone_holds_is_shown_with_where_it_is_from(tmp_path):
    async with office(tmp_path, OPS) as hub:
        waiting = await hub.views.person("gina")
        assert (waiting.account, waiting.held[-1].name) == (None, "ops")
        gina = await hub.invited("gina")
        await hub.granting.grant("gina", ["!files:read_secret"])
        shown = await hub.views.person("GINA")
        assert (shown.handle, shown.account, shown.account_type) == ("gina", gina.id, "person")
        own = [it for it in msgspec.to_builtins(shown.held) if it["origin"] != "default"]
        at = int(hub.clock.now())
        assert own[0] == {"capability": f"{CALL}:search:*", "origin": "everyone", "name": "search"}
        assert own[-3:] == [
            {"capability": READ_FILES, "origin": "settings"},
            {"capability": f"{CALL}:github:*", "origin": "group", "name": "ops"},
            {"capability": f"!{CALL}:files:read_secret", "origin": "granted", "at": at},
        ]
        await hub.accounts.change_handle(gina, "gina2")
        with pytest.raises(e.UserNotFound, match="@gina is now @gina2"):
            await hub.views.person("gina")
        assert (await hub.views.person("gina2")).held == shown.held


async def test_the_table_of_everyone_comes_in_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(grants, "MAX_GRANTS_PAGE", 2)
    tables: dict[str, Any] = {
        "groups": {"ops": ("gina", "harry")},
        "grants": {"ivy": (READ_FILES,), "@ops": (f"{CALL}:github:*",)},
    }
    async with office(tmp_path, spec(FILES, GITHUB, **tables)) as hub:
        gina, _, zoe = [await hub.invited(name) for name in ("gina", "harry", "zoe")]
        await hub.granting.grant("zoe", ["files:*", "!msg/send"])
        await hub.accounts.change_handle(gina, "anna")
        first = await hub.views.overview("")
        rest = await hub.views.overview(first.next)
        assert (len(first.people), rest.next) == (2, None)
        told = [
            (it.handle, it.state, it.leads_to, it.groups, it.settings, it.granted)
            for it in [*first.people, *rest.people]
        ]
        assert told == [
            ("gina", "redirect", "anna", ["ops"], 1, 0),
            ("harry", "account", None, ["ops"], 1, 0),
            ("ivy", "nobody", None, [], 1, 0),
            ("zoe", "account", None, [], 0, 2),
        ]
        await hub.accounts.delete(zoe)
        assert "zoe" not in [it.handle for it in (await hub.views.overview("ivy")).people]


async def test_many_who_are_read_again_at_once_after_a_doubt_are_each_read_once(hub):
    made = [await hub.accounts.register(f"gina{number}") for number in range(8)]
    for each in made[:4]:
        await hub.granting.grant(each.account.handle, [READ_FILES])
    store = hub.here.store
    reads, read, all_read = 0, store.read, asyncio.Event()

    async def together(query: Any, **how: Any) -> Any:
        nonlocal reads
        reads += 1
        found = await read(query, **how)
        if reads >= len(made):
            all_read.set()
        await all_read.wait()
        return found

    store.read = together
    try:
        await asyncio.gather(*(hub.rights._renew(each.account.id) for each in made))
    finally:
        store.read = read
    assert reads == len(made)
    for number, each in enumerate(made):
        assert hub.may(each.account, f"{CALL}:files:read_me") == [number < 4]
