"""A server made with FastMCP, over Streamable HTTP, behind the hub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.rivals import FASTMCP, NotInstalled, installed
from tests.harness import run
from tests.peers.gateway import backend, fronted, guest, reaches, token_of
from tests.peers.notes_script import PROVED, check_place
from tests.peers.protected import CONNECTIONS, Person
from tests.peers.servers import Place, listening

SOURCE = Path(__file__).parent / "fastmcp_server.py"
PROTECTED = Path(__file__).parent / "protected_fastmcp.py"


@contextmanager
def fastmcp(source: Path = SOURCE) -> Iterator[Place]:
    """The server, run by an environment of its own, which is made when it is first needed."""
    try:
        python = installed(FASTMCP, "python")
    except NotInstalled as error:
        pytest.skip(f"needs {FASTMCP}: {error}")
    with listening([python, str(source)], re.compile(r"listens on (\d+) now")) as port:
        yield Place("http", url=f"http://127.0.0.1:{port}/mcp")


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.requirement(*PROVED)
def test_clients_of_both_eras_get_of_a_server_of_fastmcp_what_they_get_without_the_hub(tmp_path):
    with fastmcp() as place:
        run(check_place(place, tmp_path))


async def two_consents(place: Place, folder: Path) -> None:
    """Two people sign in, each with their own token; one takes it back, and it is revoked."""
    spec = backend("diary", place, auth="oauth")
    async with fronted(folder, spec, era="stateless", reached=False) as there:
        ada, bob = [
            Person(there.port, each, await token_of(there, each)) for each in ("ada", "bob")
        ]
        for person in (ada, bob):
            assert await person.sign_in(namespace="diary") == "diary"
        await reaches(there.hub, "diary")
        async with guest(there, ada.token) as hers, guest(there, bob.token) as his:
            said = [
                (await each.call_tool("diary_whose", {})).content[0].text for each in (hers, his)
            ]
            assert [each.partition(" ")[2] for each in said] == ["of 2", "of 2"]
            assert said[0] != said[1]
            answer = await bob.browser.ask("DELETE", f"{CONNECTIONS}/diary")
            assert answer.status == 204
            assert "consent_needed" in (await his.call_tool("diary_whose", {})).content[0].text
            still = (await hers.call_tool("diary_whose", {})).content[0].text
            assert still == said[0].replace("of 2", "of 1")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_people_sign_in_to_a_server_of_fastmcp_each_for_themselves(tmp_path):
    with fastmcp(PROTECTED) as place:
        run(two_consents(place, tmp_path))
