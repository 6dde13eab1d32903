"""A server made with FastMCP, over Streamable HTTP, behind the hub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.rivals import FASTMCP, NotInstalled, installed
from tests.harness import run
from tests.peers.notes_script import PROVED, check_place
from tests.peers.servers import Place, listening

SOURCE = Path(__file__).parent / "fastmcp_server.py"


@contextmanager
def fastmcp() -> Iterator[Place]:
    """The server, run by an environment of its own, which is made when it is first needed."""
    try:
        python = installed(FASTMCP, "python")
    except NotInstalled as error:
        pytest.skip(f"needs {FASTMCP}: {error}")
    with listening([python, str(SOURCE)], re.compile(r"listens on (\d+) now")) as port:
        yield Place("http", url=f"http://127.0.0.1:{port}/mcp")


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.requirement(*PROVED)
def test_clients_of_both_eras_get_of_a_server_of_fastmcp_what_they_get_without_the_hub(tmp_path):
    with fastmcp() as place:
        run(check_place(place, tmp_path))
