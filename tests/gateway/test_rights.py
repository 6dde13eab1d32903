"""What people may do at the hub: defaults, settings, and whom a handle means."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.kinds import parse
from folkmoot.core.limits import MAX_CAPABILITIES
from folkmoot.core.message import Request
from folkmoot.core.policy import Principal, PrincipalType, judge
from folkmoot.core.ports import Admitted
from folkmoot.core.timing import TimingContext
from folkmoot.gateway import rights as rights_module
from folkmoot.gateway.configured_rights import DEFAULTS
from folkmoot.gateway.rights import NOBODY
from folkmoot.pipeline import Pipeline
from folkmoot.rooms.machine import DEFAULT_RIGHTS, Role
from folkmoot.settings.backends import AskRule
from tests.accounts.support import DAY
from tests.gateway.rights_support import (
    CALL,
    FILES,
    GITHUB,
    READ_FILES,
    SEARCH,
    office,
    spec,
)
from tests.rooms.machine.playbook import SETTINGS, Play, call, grant, read, says

GINAS = spec(FILES, GITHUB, SEARCH, grants={"gina": (READ_FILES,)})


@pytest.mark.requirement("capability.default-hub")
@pytest.mark.settings(given=spec(FILES, SEARCH))
async def test_a_new_account_has_mail_rooms_and_what_is_for_everyone_and_nothing_else(hub):
    alice = await hub.here.join("alice")
    robot = (await hub.accounts.register("robot", account_type="agent")).account
    principal, rights = hub.rights.of(alice)
    assert principal == Principal(alice.id, "alice", PrincipalType.PERSON)
    assert hub.rights.of(robot)[0].type is PrincipalType.AGENT
    own = (
        "tokens create_token revoke_token create_code authorization decide_authorization "
        "device_authorization decide_device_authorization passkeys begin_passkey begin_presence "
        "add_passkey rename_passkey remove_passkey export_me my_invites withdraw_my_invite "
        "connections begin_connection finish_connection forget_connection "
        "my_servers my_tools try_tool "
        "events activity find_tool call_tool"
    )
    assert list(rights) == [
        f"{CALL}:msg/*",
        f"{CALL}:ask/*",
        f"{CALL}:room/*",
        *(f"{CALL}:folkmoot/{name}" for name in own.split()),
        f"{CALL}:search:*",
        "mcp.request.prompts/get:search:*",
        "mcp.request.resources/*:search://*",
        "mcp.request.completion/complete:search:*",
        "mcp.request.completion/complete:search://*",
    ]
    assert hub.rights.of(robot)[1] is rights
    allowed = [f"{CALL}:msg/send", f"{CALL}:room/say", f"{CALL}:search:find",
               "mcp.request.prompts/get:search:ask",
               "mcp.request.resources/subscribe:search://a/b",
               "mcp.request.completion/complete:search://a/{x}"]  # fmt: skip
    denied = [f"{CALL}:files:read_file", f"{CALL}:folkmoot/other", f"{CALL}:searching:x",
              "mcp.request.resources/read:files://a", "mcp.request.prompts/get:files:a",
              "chat.message", "mcp.proposal.tools/call:search:find"]  # fmt: skip
    assert hub.may(alice, *allowed) == [True] * len(allowed)
    assert hub.may(alice, *denied) == [False] * len(denied)


@pytest.mark.settings(given=spec(SEARCH))
async def test_whoever_has_no_account_may_make_one_or_get_one_back(hub):
    assert hub.rights.of(None)[0] is NOBODY
    kinds = [f"{CALL}:{name}" for name in ("msg/register", "msg/recover", "msg/send")]
    assert hub.may(None, *kinds, f"{CALL}:search:find") == [True, True, False, False]


@pytest.mark.requirement("gateway.rights-by-effective-kind")
async def test_groups_and_people_have_what_the_settings_say_and_a_deny_wins(tmp_path):
    settings = spec(
        FILES,
        GITHUB,
        SEARCH,
        groups={"ops": ("Gina", "@harry"), "idle": ("ivy",)},
        grants={
            "@ops": (f"{CALL}:github:*", f"!{CALL}:github:delete_*"),
            "gina": (READ_FILES, f"{CALL}:github:delete_branch"),
            "harry": (f"!{CALL}:search:*", f"!{CALL}:msg/send"),
            "ivy": ({"kind": f"{CALL}:files:read_file", "payload": PATH},),
        },
    )
    async with office(tmp_path, settings) as hub:
        gina, harry, ivy = [await hub.invited(name) for name in ("gina", "harry", "ivy")]
        kinds = [f"{CALL}:{tool}" for tool in ("github:create_issue", "github:delete_branch",
                 "files:read_file", "search:find", "msg/send", "msg/inbox")]  # fmt: skip
        assert hub.may(gina, *kinds) == [True, False, True, True, True, True]
        assert hub.may(harry, *kinds) == [True, False, False, False, False, True]
        assert hub.may(ivy, *kinds) == [False, False, False, True, True, True]
        reading = parse(f"{CALL}:files:read_file")
        rights = hub.rights.of(ivy)[1]
        assert rights.allows(reading, {"params": {"arguments": {"path": "notes/a"}}})
        assert not rights.allows(reading, {"params": {"arguments": {"path": "secret"}}})


PATH = {"params": {"arguments": {"path": "notes/*"}}}


async def test_equal_rights_are_one_object_and_a_lookup_makes_nothing(tmp_path):
    grants = {"gina": (READ_FILES, f"{CALL}:a"), "harry": (f"{CALL}:a", READ_FILES)}
    async with office(tmp_path, spec(FILES, grants=grants)) as hub:
        gina, harry = [await hub.invited(name) for name in ("gina", "harry")]
        alice = await hub.here.join("alice")
        assert hub.rights.of(gina)[1] is hub.rights.of(harry)[1]
        assert hub.rights.of(gina)[1] is not hub.rights.of(alice)[1]
        assert hub.rights.of(gina)[1] is hub.rights.of(gina)[1]
        other = msgspec.structs.replace(gina, handle="other")
        assert hub.rights.of(other)[0].name == "other", "what is kept is for one handle"
        assert hub.rights.of(other)[1] is hub.rights.of(alice)[1]


async def test_no_more_accounts_are_kept_ready_than_fit(hub, monkeypatch):
    monkeypatch.setattr(rights_module, "MAX_CACHED_RIGHTS", 3)
    for account in [await hub.here.join(f"person{number}") for number in range(8)] * 2:
        assert hub.may(account, f"{CALL}:msg/send") == [True]
        assert len(hub.here.accounts.authentication.known.rights) <= 3


async def test_other_settings_hold_from_the_next_call_on_and_are_told(hub):
    gina = await hub.here.join("gina")
    told: list[str] = []
    hub.here.store.bus.listen(">", lambda event: told.append(event.subject))
    kind = f"{CALL}:files:read_file"
    assert hub.may(gina, kind) == [False]
    await hub.rights.configure(GINAS)
    assert hub.may(gina, kind) == [True], "an account that is there is meant"
    await hub.rights.configure(spec())
    assert hub.may(gina, kind) == [False]
    assert told == ["settings", "settings"]


@pytest.mark.settings(given=GINAS)
async def test_settings_that_nobody_can_go_by_change_nothing(hub):
    many = tuple(f"{CALL}:files:t{number}" for number in range(MAX_CAPABILITIES))
    bad: dict[str, Any] = {
        "grants.gina: At most 4,096": {"grants": {"gina": many}},
        "nobody can be @files": {"grants": {"files": (READ_FILES,)}},
        "nobody can be @system": {"groups": {"ops": ("system",)}},
        "asks: nobody can be @ask": {"asks": (AskRule(name="a", what=(READ_FILES,), to="ask"),)},
    }
    gina = await hub.invited("gina")
    for sentence, tables in bad.items():
        with pytest.raises(e.SettingsError, match=sentence):
            await hub.rights.configure(spec(FILES, **tables))
    assert hub.may(gina, f"{CALL}:files:read_file") == [True]
    assert hub.accounts.reserved.awaited == {"gina"}


async def test_no_stranger_becomes_who_a_rule_asks(hub):
    await hub.rights.configure(spec(asks=(AskRule(name="a", what=(READ_FILES,), to="gina"),)))
    with pytest.raises(e.InviteRequired):
        await hub.accounts.register("gina")
    assert (await hub.invited("gina")).handle == "gina"


@pytest.mark.settings(given=GINAS)
async def test_rights_stay_with_the_account_while_its_old_handle_leads_to_it(hub):
    kind = f"{CALL}:files:read_file"
    gina = await hub.invited("gina")
    assert hub.may(gina, kind) == [True]
    changed = (await hub.accounts.change_handle(gina, "gina2")).account
    assert (hub.may(changed, kind), hub.rights.of(changed)[0].name) == ([True], "gina2")
    assert (await hub.again(GINAS)).of(changed)[1].allows(parse(kind)), "a restart knows it too"
    hub.clock.advance(30 * DAY)
    assert hub.may(changed, kind) == [False], "it leads nowhere any more"
    with pytest.raises(e.InviteRequired):
        await hub.accounts.register("gina")
    assert hub.may(await hub.invited("gina"), kind) == [True]
    assert hub.may(changed, kind) == [False]


@pytest.mark.settings(given=GINAS)
async def test_a_stranger_has_nothing_of_what_a_deleted_account_had(hub):
    kind = f"{CALL}:files:read_file"
    gina = await hub.invited("gina")
    await hub.granting.grant("gina", ["github:*"])
    mallory = await hub.here.join("mallory")
    await hub.accounts.delete(gina)
    hub.clock.advance(31 * DAY)
    with pytest.raises(e.InviteRequired):
        await hub.accounts.register("gina")
    with pytest.raises(e.HandleTaken):
        await hub.accounts.change_handle(mallory, "gina")
    assert hub.may(mallory, kind) == [False]
    assert hub.may(await hub.invited("gina"), kind, f"{CALL}:github:x") == [True, False]
    assert hub.rights.granted == {}


async def test_whoever_has_more_than_one_can_hold_may_do_nothing_rather_than_too_much(hub):
    many = tuple(f"{CALL}:files:t{number}" for number in range(MAX_CAPABILITIES - len(DEFAULTS)))
    gina = await hub.here.join("gina")
    await hub.granting.grant("gina", ["!msg/send"])
    await hub.rights.configure(spec(FILES, grants={"gina": many}))
    assert hub.may(gina, f"{CALL}:files:t1", f"{CALL}:msg/inbox") == [False, False]
    await hub.granting.revoke("gina", [], everything=True)
    assert hub.may(gina, f"{CALL}:files:t1", f"{CALL}:msg/inbox") == [True, True]


@pytest.mark.requirement("gateway.reserved-names", "handle.shares-names")
async def test_a_namespace_that_is_someones_name_is_refused_with_the_reason(hub):
    alice, bob = await hub.here.join("alice"), await hub.here.join("bobby")
    await hub.accounts.change_handle(alice, "ally")
    await hub.accounts.delete(bob)
    assert await hub.rights.taken_namespaces(["ally", "alice", "bobby", "room", "github"]) == {
        "ally": "No backend can have the namespace 'ally': an account has this handle.",
        "alice": "No backend can have the namespace 'alice': it leads to @ally, who had it "
        "before, until 2023-12-14.",
        "bobby": "No backend can have the namespace 'bobby': an account that had it was "
        "deleted, and it stays reserved until 2023-12-14.",
        "room": "No backend can have the namespace 'room': the name is reserved.",
    }
    await hub.accounts.register("github")
    assert await hub.rights.taken_namespaces(["gitlab"]) == {}
    with pytest.raises(e.HandleTaken):
        await hub.accounts.register("gitlab")
    await hub.rights.configure(spec())
    await hub.accounts.register("gitlab")


async def test_a_reload_and_a_registration_at_one_moment_agree(hub):
    for number in range(6):
        name = f"gina{number}"
        settings = spec(FILES, grants={name: (READ_FILES,)})
        register, configure = hub.accounts.register(name), hub.rights.configure(settings)
        ended = await asyncio.gather(register, configure, return_exceptions=True)
        assert not isinstance(ended[1], BaseException)
        if isinstance(ended[0], BaseException):
            assert isinstance(ended[0], e.InviteRequired)
        else:
            assert hub.may(ended[0].account, f"{CALL}:files:read_file") == [True]


class Performed:
    """A service that only says that it was asked."""

    async def perform(self, admitted: Admitted) -> str:
        return str(admitted.kind)

    def refused(
        self, envelope: MessageEnvelope[Any], principal: Principal, error: e.PolicyError
    ) -> e.PolicyError:
        return error


SAME = [
    [f"{CALL}:github:*"],
    [f"{CALL}:github:create_*"],
    [f"{CALL}:github:delete_issue"],
    ["mcp.request.*"],
    ["mcp.request.resources/*"],
    [{"kind": CALL, "payload": {"params": {"arguments": {"title": "a*"}}}}],
    [{"kind": CALL, "payload": {"params": {"arguments": {"title": "b*"}}}}],
]


@pytest.mark.requirement("policy.same-code-everywhere")
@pytest.mark.parametrize("patterns", SAME, ids=str)
async def test_a_room_and_the_hub_say_the_same_of_the_same_call(patterns):
    play = Play(SETTINGS, "alice", "bob", "files")
    play._take(says("alice", grant("bob", *patterns))(play))
    play.waiting.clear()
    asked = call("files", "github:create_issue", {"title": "abc"})
    told = read(says("bob", asked, id="1")(play)[0].data)
    in_room = told["payload"] if told["kind"] == "system.error" else {}

    pipeline = Pipeline.to(Performed())
    request = Request(id=1, method="tools/call", params=asked["payload"]["params"])
    envelope = MessageEnvelope.new(request, TimingContext(0.0, 0.0))
    rights = Rights([*DEFAULT_RIGHTS[Role.MEMBER], *patterns])
    at_hub: dict[str, Any] = {}
    try:
        await pipeline.run(envelope, Principal("account-bob", "bob"), rights)
    except e.PolicyError as error:
        at_hub = {"error": error.code, "message": error.message, **error.data}
    assert at_hub == {name: in_room.get(name) for name in at_hub}
    assert bool(at_hub) == bool(in_room)


@pytest.mark.requirement("gateway.rights-by-effective-kind", "policy.same-code-everywhere")
def test_a_refusal_names_what_was_asked_and_what_is_held():
    kind = parse(f"{CALL}:github:create_issue")
    error = judge(Principal("1", "ann"), Rights(DEFAULTS), kind).error
    assert error.data == {"attempted_kind": str(kind), "your_capabilities": list(DEFAULTS)}
