"""Frameworks that pause before a tool have a person decide, as the examples show it."""

from __future__ import annotations

import asyncio
import os
import sysconfig
from pathlib import Path
from subprocess import PIPE

import pytest
from starlette.applications import Starlette

import folkmoot
from benchmarks.rivals import NotInstalled, installed
from tests.amounts import more_than_once
from tests.harness import served
from tests.peers.model import calling
from tests.process import environment
from tests.transports.rest.support import done, house

HERE = Path(__file__).parent
PATHS = (
    HERE.parents[1] / "examples",
    Path(folkmoot.__file__).parents[1],
    sysconfig.get_path("purelib"),
)
FRAMEWORKS = {
    "claude_agent": "claude-agent-sdk==0.2.184",
    # Later ones want a newer `certifi` than every mirror has.
    "langchain": "langchain==1.4.5",
    "openai_agents": "openai-agents==0.24.0",
    "pydantic_ai": "pydantic-ai-slim==2.68.0",
}
TASK = "Deploy 1.2."
CALL = {"version": "1.2", "place": "production"}
EDITED = {"version": "1.2", "place": "staging"}

# The first of the tests that need a framework installs it.
pytestmark = [pytest.mark.long, pytest.mark.timeout(600), more_than_once]


@pytest.fixture(params=FRAMEWORKS)
def framework(request):
    try:
        return request.param, installed(FRAMEWORKS[request.param], "python")
    except NotInstalled as error:
        pytest.skip(f"needs {FRAMEWORKS[request.param]}: {error}")


@pytest.fixture
async def decided(framework, tmp_path):
    """Has an agent of bob work until ada has decided; what it prints is what it did and read."""
    name, python = framework
    home = tmp_path / "home"
    home.mkdir()
    async with (
        house(tmp_path / "hub") as hub,
        served(Starlette(routes=[calling("mcp__work__deploy", CALL)])) as model,
    ):
        ada, bob = await hub.people("ada", "bob")
        variables = environment(
            FOLKMOOT_TOKEN=bob.token,
            HOME=str(home),
            OPENAI_AGENTS_DISABLE_TRACING="1",
            ANTHROPIC_BASE_URL=f"http://127.0.0.1:{model.port}",
            ANTHROPIC_API_KEY="none",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            DISABLE_AUTOUPDATER="1",
        )

        async def waiting():
            return [each["call"] for each in (await ada.get("/v1/asks?kind=call"))["asks"]]

        async def decide(verdict, **content):
            child = await asyncio.create_subprocess_exec(
                *(python, str(HERE / "asks_script.py"), name, os.pathsep.join(map(str, PATHS))),
                *("--url", hub.hub.base_url, "--to", "ada", TASK),
                stdout=PIPE,
                stderr=PIPE,
                cwd=home,
                env=variables,
            )
            said = asyncio.ensure_future(child.communicate())
            try:
                async with asyncio.timeout(180):
                    while not (asked := await waiting()):
                        assert not said.done(), said.result()
                        await asyncio.sleep(0.05)
                    (call,) = asked
                    assert call["tool"].removeprefix("mcp__work__") == "deploy"
                    assert (call["arguments"], call["why"]) == (CALL, TASK)
                    path = f"/v1/asks/{call['id']}/{verdict}"
                    done(await ada.ask("POST", path, content), 200)
                    output, errors = await said
            finally:
                if child.returncode is None:
                    child.kill()
                    await child.wait()
            assert child.returncode == 0, errors
            assert await waiting() == []
            read = output.decode()
            return [line for line in read.splitlines() if line.startswith("Deploying")], read

        yield decide


async def test_what_a_person_approves_runs_once_as_it_was_shown(decided):
    did, read = await decided("approve")
    assert did == ["Deploying 1.2 to production."]
    assert "1.2 runs in production." in read


async def test_what_a_person_rejects_does_not_run_and_the_model_reads_why(decided):
    did, read = await decided("reject", reason="Not on a Friday.")
    assert did == []
    assert "Not on a Friday." in read


async def test_what_a_person_edits_runs_once_with_the_arguments_that_they_approved(decided):
    did, read = await decided("edit", arguments=EDITED)
    assert did == ["Deploying 1.2 to staging."]
    assert "1.2 runs in staging." in read
