"""The people of a siege notice what is lost, doubled or missing."""

from __future__ import annotations

import itertools

from tests.mcp_harness import meeting
from tests.siege.people import Mail, Talker
from tests.siege.wire import HUB, Line, call, result


async def test_mail_that_is_gone_or_there_twice_is_counted(tmp_path):
    async with meeting(tmp_path) as there:
        tokens = {name: (await there.hub.accounts.register(name)).token for name in ("ada", "bob")}
        line, mail = Line(there.port, HUB), Mail()
        for _ in range(3):
            await mail.send(line, tokens["ada"], "bob")
        whole = await mail.check(there.port, tokens)
        assert whole == {"acknowledged": 3, "lost": 0, "doubled": 0}
        gone = {"message_id": next(iter(mail.acknowledged))}
        result(await line.ask(call("msg_delete_message", gone, tokens["bob"])))
        mail.numbers = itertools.count(2)
        await mail.send(line, tokens["ada"], "bob")
        line.close()
        found = await mail.check(there.port, tokens)
        assert found == {"acknowledged": 4, "lost": 1, "doubled": 1}


def test_a_gap_in_what_a_room_says_is_counted():
    talker = Talker("ada", "", "square", HUB)
    history = {"epoch": "e", "history": {"last_seq": 4}}
    talker.hear({"kind": "system.welcome", "payload": history})
    for seq in (5, 6, 8, 9):
        talker.hear({"kind": "chat.message", "seq": seq, "from": "bob", "id": str(seq)})
    assert talker.gaps == 1
