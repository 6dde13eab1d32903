"""Who may use a server is told with the reason: which grant, group or setting."""

from __future__ import annotations

from typing import Any

from folkmoot.core.capability import capability
from folkmoot.gateway.access import Access, access, access_to
from folkmoot.gateway.configured_rights import HeldRight, Origin
from folkmoot.gateway.part import Row, kind_of
from folkmoot.names.safe_names import full_pattern

READ, WRITE = "files:read", "files:write"
ENTRY: Any = None
ROWS = tuple(Row(name, kind_of("tools", name), ENTRY) for name in (READ, WRITE))


def held(origin: Origin, *patterns: str, name: str = "") -> list[HeldRight]:
    return [HeldRight(capability(full_pattern(each)), origin, name) for each in patterns]


def why(found: Access) -> list[str]:
    return [reason.why for reason in found.reasons]


def test_a_grant_of_a_group_is_the_reason_that_is_told():
    team = held("group", "files:read", "msg/*", name="team")
    found = access(team, "files", ROWS)
    assert (found.may, found.tools, why(found)) == ("some", 1, ["allowed for the group team"])
    one = access_to(team, kind_of("tools", READ))
    assert (one.may, why(one)) == ("all", ["allowed for the group team"])
    other = access_to(team, kind_of("tools", WRITE))
    assert (other.may, why(other)) == ("none", [])


def test_a_deny_outweighs_every_grant_and_is_the_reason_then():
    given = [*held("everyone", "files:*", name="files"), *held("granted", "!files:write")]
    found = access(given, "files", ROWS)
    assert (found.may, found.tools) == ("some", 1)
    assert why(found) == ["the server is open to everyone", "denied by an operator"]
    assert [reason.denies for reason in found.reasons] == [False, True]
    refused = access_to(given, kind_of("tools", WRITE))
    assert (refused.may, why(refused)) == ("none", ["denied by an operator"])


def test_a_grant_for_some_arguments_alone_allows_some():
    notes = {"params": {"arguments": {"path": "notes/*"}}}
    source = {"kind": "mcp.request.tools/call:files:read", "payload": notes}
    found = access_to([HeldRight(capability(source), "settings")], kind_of("tools", READ))
    assert (found.may, why(found)) == ("some", ["allowed in the settings file"])


def test_whoever_holds_nothing_of_a_server_may_not_use_it():
    found = access(held("default", "msg/*", "room/*"), "files", ROWS)
    assert (found.may, found.tools, found.reasons) == ("none", 0, [])
    everything = access(held("settings", "mcp.*"), "files", ROWS)
    assert (everything.may, everything.tools) == ("all", 2)
