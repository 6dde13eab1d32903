"""Operating a hub from outside: on its socket, and over the network with a token that may."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from folkmoot.app import Hub
from folkmoot.core import errors as e
from folkmoot.operations import OPERATIONS
from folkmoot.operations.row import Absent, Operation
from tests.faults.backends import operator
from tests.harness import Answer, ask, head, read_answer
from tests.mcp_harness import BOTH, Meeting
from tests.operator import asked

ARGUMENTS: dict[str, Any] = {
    "handle": "bob",
    "held_id": 1,
    "path": "/nowhere/at/all",
    "patterns": ["files"],
    "everything": True,
    "tools": [],
    "tape": "one.tape",
    "credential": "c_0",
}
OPERATOR = [row for row in OPERATIONS if row.who == "operator"]
# Nothing is held or recorded here, no server is there, and the hub was not started from settings.
UNLIKELY = frozenset(
    (
        *("held/show", "folkmoot/settings", "folkmoot/groups", "folkmoot/tapes", "folkmoot/tape"),
        *("folkmoot/server", "folkmoot/server_history", "folkmoot/server_access"),
        "folkmoot/judge_call",
    )
)
# What someone may send who wants to be taken for the operator.
PRETENDING = {
    "folkmoot.operator": "true",
    "x-folkmoot-operator": "true",
    "x-forwarded-for": "127.0.0.1",
    "host": "localhost",
}


def given(row: Operation) -> dict[str, Any]:
    names = row.takes.__struct_fields__
    wanted = {name: value for name, value in ARGUMENTS.items() if name in names}
    if row.name == "folkmoot/revoke":
        del wanted["everything"]
    return wanted


async def over_the_network(there: Meeting, row: Operation, **headers: str) -> Answer:
    request = asked(row, given(row))
    return await ask(
        there.port,
        request.target,
        method=request.method,
        headers={**request.headers, **headers},
        body=request.body,
    )


async def operator_token(hub: Hub) -> dict[str, str]:
    """The header of a token of alice's that operates the hub."""
    made = await operator(hub, "folkmoot/create_token_for", handle="alice", scope="operate")
    return {"authorization": f"Bearer {made['token']}"}


def code(answer: Answer) -> str:
    return str(json.loads(answer.text)["error"]["code"])


@pytest.mark.requirement("operator.table")
def test_everything_an_operator_does_is_a_row_without_a_tool():
    for row in OPERATOR:
        assert (row.who, row.scope) == ("operator", "operate"), row.name
        assert isinstance(row.tool, Absent), row.name
        assert not isinstance(row.routes, Absent), row.name
        assert row.needs, row.name


@pytest.mark.requirement("operator.network", "credentials.operate")
async def test_over_the_network_only_a_token_that_says_so_operates_a_hub(hub, tmp_path):
    alice, _ = await hub.people("alice", "bob")
    await operator(hub.hub, "folkmoot/grant", handle="alice", patterns=["*"])
    everything = {"authorization": f"Bearer {alice.token}"}
    operating = await operator_token(hub.hub)
    for row in OPERATOR:
        assert (await over_the_network(hub, row, **PRETENDING)).status == 401, row.name
        # Not even someone who was granted everything.
        member = await over_the_network(hub, row, **PRETENDING, **everything)
        assert (member.status, code(member)) == (403, "scope_missing"), row.name
        if row.local:
            refused = await over_the_network(hub, row, **operating)
            assert (refused.status, code(refused)) == (403, "capability_denied"), row.name
            assert "socket" in json.loads(refused.text)["error"]["message"]
    allowed = [row for row in OPERATOR if row.effect == "reads" and not row.local]
    assert len(allowed) > 5
    for row in allowed:
        if row.name not in UNLIKELY:
            answer = await over_the_network(hub, row, **operating)
            assert answer.status == 200, (row.name, answer.text)
    # A token that operates is no other: it reads nobody's mail.
    inbox = await ask(hub.port, "/v1/messages", headers=operating)
    assert (inbox.status, code(inbox)) == (403, "scope_missing")
    assert (tmp_path / "nowhere").exists() is False


@pytest.mark.requirement("operator.socket")
async def test_on_the_socket_an_operator_needs_no_token_and_no_host_is_wrong(hub, tmp_path):
    (bob,) = await hub.people("bob")
    for row in OPERATOR:
        if row.effect == "reads" and row.name not in UNLIKELY:
            await operator(hub.hub, row.name, **given(row))
    # It is the whole application, and who has a token is whom the token says.
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "control.sock"))
    evil = {"host": "evil.example", "origin": "https://evil.example", "connection": "close"}
    writer.write(head("/v1/me", **evil, authorization=f"Bearer {bob.token}"))
    answer = await read_answer(reader)
    writer.close()
    assert (answer.status, answer.json()["handle"]) == (200, "bob")


@pytest.mark.sqlite("makes a backup")
@pytest.mark.requirement("operator.audited")
async def test_what_an_operator_does_leaves_a_line_that_says_who_and_what(hub, tmp_path):
    path = str(tmp_path.parent / "copy.db")
    await hub.people("bob")
    await operator(hub.hub, "folkmoot/backup", path=path)
    await operator(hub.hub, "folkmoot/suspend", handle="bob")
    with pytest.raises(e.FolkmootError):
        await operator(hub.hub, "folkmoot/backup", path=path)
    lines = (await operator(hub.hub, "folkmoot/audit"))["lines"]
    told = [(it["action"], it["by"], it["about"]) for it in lines]
    assert told.count(("database.backed_up", "operator", path)) == 1
    assert told.count(("account.suspended", "operator", "bob")) == 1


@pytest.mark.one_node("nodes of one process have one log")
@pytest.mark.requirement("operator.audited")
async def test_an_operator_with_a_token_is_named_in_the_audit_log_for_what_they_do(hub):
    alice, bob = await hub.people("alice", "bob")
    operating = await operator_token(hub.hub)

    async def do(method: str, path: str, **body: Any) -> Any:
        sent = json.dumps(body).encode() if method == "POST" else b""
        answer = await ask(hub.port, path, method=method, headers=BOTH | operating, body=sent)
        assert answer.status < 300, answer.text
        return json.loads(answer.text) if answer.body else None

    # What there is to know of bob: never a secret.
    person = await do("GET", "/v1/accounts/bob")
    assert (person["handle"], person["quotas"]["tokens"]["used"]) == ("bob", 1)
    assert person["quotas"]["mail"]["limit"] > 0
    found = await do("GET", "/v1/accounts?text=BO")
    assert [it["handle"] for it in found["people"]] == ["bob"]
    assert (await do("GET", "/v1/accounts?text=%25"))["people"] == []
    (token,) = (await do("GET", "/v1/people/bob/credentials"))["tokens"]
    assert bob.token not in json.dumps(token)
    assert token["current"] is False
    await do("POST", "/v1/people/bob/grants", patterns=["!msg/send"])
    await do("DELETE", "/v1/people/bob/grants?everything=true")
    await do("POST", "/v1/people/carol/invite", days=2)
    await do("POST", "/v1/accounts/bob/suspend", reason="asked to")
    await do("POST", "/v1/accounts/bob/restore")
    await do("DELETE", f"/v1/people/bob/credentials/{token['id']}")
    gone = await ask(hub.port, "/v1/me", headers={"authorization": f"Bearer {bob.token}"})
    assert gone.status == 401
    # Not a second time, and not a way to another's token: the handle and the id must fit.
    alices = (await do("GET", "/v1/people/alice/credentials"))["tokens"]
    for id_ in (token["id"], *(it["id"] for it in alices if not it["current"])):
        path = f"/v1/people/bob/credentials/{id_}"
        refused = await ask(hub.port, path, method="DELETE", headers=operating)
        assert (refused.status, code(refused)) == (404, "credential_not_found")
    await hub.hub._audit.drain()
    lines = (await do("GET", "/v1/audit?by=alice"))["lines"]
    bobs = ("account.restored", "account.suspended", "hub.grant", "hub.revoke")
    assert sorted((it["action"], it["about"]) for it in lines) == [
        ("account.invited", "carol"),
        *((action, "bob") for action in bobs),
        ("token.revoked", token["id"]),
    ]
    (revoked,) = (it for it in lines if it["action"] == "token.revoked")
    assert revoked["detail"] == {"of": "bob"}
    assert await do("GET", "/v1/audit?server=files") == {"lines": []}
    # What an operator did is theirs in the list of what they did, and not bob's.
    signed = {"authorization": f"Bearer {alice.token}"}
    assert "account.suspended" in (await ask(hub.port, "/v1/me/activity", headers=signed)).text
