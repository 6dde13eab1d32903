"""An argument that is for a person to give is asked of them, where the client can ask."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest

from tests.mcp_harness import both_eras


def saying(action: Any, content: Any, asked: list[str]) -> Any:
    """A user who answers every question like this."""

    async def answer(_: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action=action, content=content)

    return answer


@both_eras
@pytest.mark.requirement("mcp.input-required")
async def test_the_user_confirms_the_end_of_an_account(hub):
    made = await hub.hub.accounts.register("alice")
    asked: list[str] = []
    for action, content, sentence in (
        ("decline", None, "To delete your account, give your own handle as confirm."),
        ("accept", {"confirm": "bob"}, "To delete your account, give your own handle"),
        ("accept", {"confirm": 7}, "confirm must be a string."),
        ("accept", None, "To delete your account, give your own handle as confirm."),
    ):
        alice = await hub.returning(made.token, elicitation_callback=saying(action, content, asked))
        assert (await alice.refused("msg/delete_account")).startswith(sentence)
    alice = await hub.returning(
        made.token, elicitation_callback=saying("accept", {"confirm": "alice"}, asked)
    )
    assert (await alice.call("msg/delete_account"))["handle"] == "alice"
    assert len(asked) == 5
    assert "This cannot be undone." in asked[0]


@both_eras
async def test_the_user_is_asked_whatever_the_assistant_confirms(hub):
    bob = await hub.person("bob")
    made = await hub.hub.accounts.register("alice")
    asked: list[str] = []
    declining = await hub.returning(made.token, elicitation_callback=saying("decline", None, asked))
    sent = await declining.call("msg/send", to="bob", body="hello")
    said = await declining.refused("msg/delete_account", confirm="alice")
    assert said.startswith("To delete your account, give your own handle")
    through = {"name": "msg_delete_account", "arguments": {"confirm": "alice"}}
    said = await declining.refused("folkmoot/call_tool", **through)
    assert said.startswith("To delete your account, give your own handle")
    thread = {"thread_id": sent["thread_id"], "confirm": True}
    said = await declining.refused("msg/delete_thread", **thread)
    assert said == "Nothing was deleted: the user did not agree."
    assert len(asked) == 3
    assert sent["thread_id"] in asked[2]
    assert len((await declining.call("msg/threads"))["threads"]) == 1
    agreeing = await hub.returning(
        made.token, elicitation_callback=saying("accept", {"confirm": True}, asked)
    )
    await agreeing.call("msg/delete_thread", **thread)
    assert (await agreeing.call("msg/threads"))["threads"] == []
    # Who cannot be asked needs no more than the arguments.
    await bob.call("msg/delete_thread", thread_id=sent["thread_id"])
    assert (await bob.call("msg/threads"))["threads"] == []


@both_eras
async def test_nobody_is_asked_who_cannot_be(hub):
    asked: list[str] = []
    answer = saying("accept", {"confirm": "alice"}, asked)
    stranger = await hub.stranger(elicitation_callback=answer)
    assert await stranger.refused("msg/delete_account") == "Authentication required."
    alice = await hub.person("alice")
    assert await alice.refused("msg/delete_account") == "Missing argument: confirm."
    said = await alice.refused("msg/delete_account", confirm="yes")
    assert said.startswith("To delete your account, give your own handle as confirm.")
    assert await alice.call("msg/delete_account", confirm="@Alice@localhost") == {
        "handle": "alice",
        "message": "Account deleted. The token is now invalid.",
        "backups": "Older backups of the hub still contain your mail.",
    }
    assert asked == []


async def test_nothing_is_deleted_where_a_client_declares_what_it_cannot_do(hub):
    async def refuse(_: Any, __: Any) -> types.ErrorData:
        return types.ErrorData(code=types.METHOD_NOT_FOUND, message="No questions here.")

    made = await hub.hub.accounts.register("alice")
    alice = await hub.returning(made.token, elicitation_callback=refuse)
    said = await alice.refused("msg/delete_account", confirm="alice")
    assert said.startswith("The client answered the server with an error")
    assert (await alice.call("msg/whoami"))["handle"] == "alice"
