"""Much long mail at once: no answer is larger than a page, and nothing is lost by that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from folkmoot.export import Exporter
from folkmoot.mail.limits import MAX_PAGE_BYTES
from tests.mcp_harness import Meeting, meeting, modern, one_era

COUNT = 40
WIDEST = "\U0001f600"
"""A character of four bytes."""


async def long_mail(there: Meeting) -> tuple[str, list[str]]:
    """The token of one who has much long mail, and its bodies, newest first."""
    accounts, mail = there.hub.accounts, there.hub.mail
    sender = (await accounts.register("sender")).account
    reader = await accounts.register("reader")
    bodies = [f"{number} {WIDEST * 30_000}" for number in range(COUNT)]
    for body in bodies:
        await mail.send(sender, "reader", body=body)
    return reader.token, bodies[::-1]


@pytest.mark.requirement("paging.cursor")
@pytest.mark.parametrize("tool", ["msg/inbox", "msg/thread"])
@one_era
async def test_long_mail_comes_in_answers_of_a_bounded_size_and_all_of_it(
    era: str, tool: str, hub: Meeting
) -> None:
    token, bodies = await long_mail(hub)
    reader = await hub.returning(token)
    arguments: dict[str, Any] = {"limit": 100, "peek": True}
    if tool == "msg/thread":
        [thread] = (await reader.call("msg/threads"))["threads"]
        arguments["thread_id"] = thread["id"]
    seen: list[str] = []
    while True:
        page = await reader.call(tool, **arguments)
        assert len(json.dumps(page, ensure_ascii=False).encode()) <= MAX_PAGE_BYTES
        assert len(page["messages"]) > 1
        seen += [message["body"] for message in page["messages"]]
        if page["next_cursor"] is None:
            break
        arguments["cursor"] = page["next_cursor"]
    assert seen == bodies


@pytest.mark.requirement("tool.inbox.marks-read")
async def test_what_did_not_fit_stays_unread(hub: Meeting) -> None:
    token, _ = await long_mail(hub)
    reader = await hub.returning(token)
    shown = len((await reader.call("msg/inbox", limit=100))["messages"])
    assert 0 < shown < COUNT
    assert (await reader.call("msg/digest"))["total_unread"] == COUNT - shown


async def test_a_page_is_bounded_as_it_is_on_the_wire(hub: Meeting) -> None:
    token, bodies = await long_mail(hub)
    asked, headers = modern("tools/call", name="msg/inbox", arguments={"limit": 100})
    answer = await hub.post(asked, query=f"?token={token}", headers=headers)
    assert answer.status == 200
    # On the wire such a character is escaped, in three times its bytes.
    assert len(answer.body) < 3 * MAX_PAGE_BYTES
    told = json.loads(answer.json()["result"]["content"][0]["text"])
    count = len(told["messages"])
    assert 1 < count < COUNT
    assert [message["body"] for message in told["messages"]] == bodies[:count]


async def test_an_export_has_all_of_it(tmp_path: Path) -> None:
    async with meeting(tmp_path / "hub") as there:
        _, bodies = await long_mail(there)
        hub = there.hub
        exporter = Exporter(hub.store, hub.clock, hub.accounts, hub.mail)
        target = tmp_path / "reader.json"
        written = await exporter.export("reader", target)
        assert written.messages == COUNT
        [thread] = json.loads(target.read_text())["threads"]
        assert [message["body"] for message in thread["messages"]] == bodies
