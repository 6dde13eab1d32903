"""The people of a siege notice what is lost, doubled or missing."""

from __future__ import annotations

import itertools
import json

from tests.mcp_harness import meeting
from tests.siege.people import Mail, Regular
from tests.siege.wire import HUB, Line


async def test_mail_that_is_gone_or_there_twice_is_counted(tmp_path):
    async with meeting(tmp_path) as there:
        tokens = {name: (await there.hub.accounts.register(name)).token for name in ("ada", "bob")}
        line, mail = Line(there.port, tokens["ada"]), Mail()
        for _ in range(3):
            await mail.send(line, "bob")
        whole = await mail.check(there.port, tokens)
        assert whole == {"acknowledged": 3, "lost": 0, "doubled": 0}
        gone = next(iter(mail.acknowledged))
        async with Line(there.port, tokens["bob"]) as bob:
            await bob.call("msg_delete_message", message_id=gone)
        mail.numbers = itertools.count(2)
        await mail.send(line, "bob")
        line.close()
        found = await mail.check(there.port, tokens)
        assert found == {"acknowledged": 4, "lost": 1, "doubled": 1}


def test_a_gap_in_what_a_room_says_is_counted():
    talker = Regular("ada", "", "square", HUB)
    for seq in (1, 2, 4, 5):
        told = {"kind": "chat.message", "seq": seq, "from": "bob", "id": str(seq)}
        talker.hear(json.dumps(told).encode())
    assert (talker.gaps, talker.last) == (1, 5)
