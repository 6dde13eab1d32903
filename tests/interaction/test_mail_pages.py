"""Much long mail at once: no answer is larger than a page, and nothing is lost by that."""

from __future__ import annotations

import json

from folkmoot.export import Exporter
from folkmoot.mail.limits import MAX_PAGE_BYTES
from tests.mcp_harness import Meeting, meeting, modern

COUNT = 40
# A character of four bytes.
WIDEST = "\U0001f600"


async def long_mail(there: Meeting) -> tuple[str, list[str]]:
    """The token of one who has much long mail, and its bodies, newest first."""
    accounts, mail = there.hub.accounts, there.hub.mail
    sender = (await accounts.register("sender")).account
    reader = await accounts.register("reader")
    bodies = [f"{number} {WIDEST * 30_000}" for number in range(COUNT)]
    for body in bodies:
        await mail.send(sender, "reader", body=body)
    return reader.token, bodies[::-1]


async def test_a_page_is_bounded_as_it_is_on_the_wire(hub):
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


async def test_an_export_has_all_of_it(tmp_path):
    async with meeting(tmp_path / "hub") as there:
        _, bodies = await long_mail(there)
        hub = there.hub
        exporter = Exporter(hub.store, hub.clock, hub.accounts, hub.mail)
        target = tmp_path / "reader.json"
        assert (await exporter.export("reader", target)).messages == COUNT
        [thread] = json.loads(target.read_text())["threads"]
        assert [message["body"] for message in thread["messages"]] == bodies
