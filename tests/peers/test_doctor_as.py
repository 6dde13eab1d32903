"""`folkmoot doctor --as` and a protected server that others made."""

from __future__ import annotations

import pytest

from folkmoot.cli.doctor_as import CLIENTS, Walk
from tests.peers.test_gateway_fastmcp import PROTECTED, fastmcp


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_protected_server_of_fastmcp_is_walked_to():
    with fastmcp(PROTECTED) as place:
        for client in ("claude-code", "codex", "inspector"):
            found = await Walk(CLIENTS[client], place.url).run()
            told = {it.subject: (it.level, it.text) for it in found}
            # Its provider for tests asks nobody.
            assert told.pop("authorization page") == ("warning", "it gives a code at once")
            assert {level for level, _ in told.values()} == {"ok"}, told
            assert list(told)[-1] == "tokens"
        elsewhere = place.url.replace("127.0.0.1", "localhost")
        [*_, last] = await Walk(CLIENTS["claude-code"], elsewhere).run()
    assert (last.subject, last.level) == ("resource metadata", "problem")
