"""What the page of rooms says is what a hub does."""

from __future__ import annotations

from contextlib import AsyncExitStack

from tests.docs.pages import pages
from tests.docs.stage import Stage
from tests.transports.rooms.support import town

PAGE = "docs/reference/rooms.md"
ROOM = "planning"


async def test_a_hub_says_what_the_page_of_rooms_shows(tmp_path):
    async with town(tmp_path) as there, AsyncExitStack() as stack:
        ada = await there.person("ada")
        bob = await there.person("bob")
        files = await there.person("files", account_type="agent")
        await there.room(ada, ROOM, capabilities=None)
        tokens = {"ada": ada.token, "bob": bob.token, "files": files.token}
        stage = Stage(there, ROOM, tokens, stack)
        await stage.join("ada")
        await stage.join("files")
        assert await stage.play(pages()[PAGE]) >= 33
