"""A server made with the official SDK behind the hub."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.harness import run
from tests.mcp_harness import both_eras
from tests.peers.gateway import backend, fronted, guest, token_of
from tests.peers.notes_script import PROVED, check_place
from tests.peers.sdk_server import Notebook, notebook_http
from tests.peers.servers import Place

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.timeout(600),
]


@pytest.mark.requirement(*PROVED)
async def test_clients_of_both_eras_get_of_a_server_of_the_sdk_what_they_get_without_the_hub(
    tmp_path,
):
    async with notebook_http(Notebook()) as url:
        await check_place(Place("http", url=url), tmp_path)


@pytest.mark.long
@pytest.mark.requirement(*PROVED)
def test_the_same_is_so_where_a_server_of_the_sdk_is_a_process_of_the_hub(tmp_path):
    run(check_place(Place("stdio", (sys.executable, "-m", "tests.peers.sdk_server")), tmp_path))


@both_eras
@pytest.mark.requirement("gateway.routes-by-namespace")
async def test_a_call_that_is_given_up_is_cancelled_at_the_server_it_went_to(era, tmp_path):
    books = [Notebook(), Notebook()]
    async with notebook_http(books[0]) as one, notebook_http(books[1]) as two:
        backends = [
            backend(name, Place("http", url=url)) for name, url in (("one", one), ("two", two))
        ]
        async with (
            fronted(tmp_path, *backends, era=era) as there,
            guest(there, await token_of(there, "ada")) as client,
        ):
            waiting = [
                asyncio.ensure_future(client.call_tool(name, {}))
                for name in ("one_hang", "two_hang")
            ]
            for book in books:
                await book.hanging.wait()
            ended = books[0].over
            waiting[0].cancel()
            await asyncio.wait(waiting[:1])
            await ended.wait()
            assert (books[0].happened, books[1].happened) == (["cancelled"], [])
            assert not waiting[1].done()
            waiting[1].cancel()
            await asyncio.wait(waiting)
