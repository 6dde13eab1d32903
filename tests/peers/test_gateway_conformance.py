"""The official conformance suite against a server that stands behind the hub."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, ClientTimeout, web

from tests.conformance.node import node_or_skip
from tests.conformance.suite import REVISIONS, TASK_CHECKS, Outcome, hub, run_suite
from tests.harness import run
from tests.peers.gateway import backend, fronted, token_of
from tests.peers.servers import Place

SECONDS = 600
NAMESPACE = "suite"
MOST = 64 * 1024 * 1024
URI = re.compile(rb"\b" + NAMESPACE.encode() + rb"://([a-z]+)/-/")
NAME = re.compile(rb'(?<=")' + NAMESPACE.encode() + rb"_(?=[a-z])")
HOP = frozenset({"host", "content-length", "transfer-encoding", "connection", "content-encoding"})


# How the names of the hub's own begin, which the suite finds in the same lists.
OWN = ("msg_", "room_", "folkmoot_", "mmp://", "ui://", "room://")
# Scenarios whose fixtures here want a client's folders, which no server behind the hub is told.
WANT_ROOTS = frozenset(
    {"input-required-result-basic-list-roots", "input-required-result-multiple-input-requests"}
)


def here(own: str) -> str:
    """A name or URI of the server's as it is at the hub."""
    if own.strip().startswith(OWN):
        return own
    if "://" in own:
        return f"{NAMESPACE}://{own.replace('://', '/-/', 1)}"
    return f"{NAMESPACE}_{own}"


def asked(message: Any) -> Any:
    """A message of the suite's with the names that the hub knows."""
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(params, dict):
        return message
    for place in (params, params.get("ref"), params.get("notifications")):
        if isinstance(place, dict):
            for member in ("name", "uri"):
                if isinstance(place.get(member), str) and message["method"] != "initialize":
                    place[member] = here(place[member])
            if isinstance(uris := place.get("resourceSubscriptions"), list):
                place["resourceSubscriptions"] = [here(uri) for uri in uris]
    return message


def told(line: bytes) -> bytes:
    """What the hub says, with the names of the server's own."""
    return NAME.sub(b"", URI.sub(rb"\1://", line))


class Renaming:
    """Stands before a hub and gives the tools of one backend their own names, and nothing else."""

    def __init__(self, url: str, session: ClientSession) -> None:
        self._url = url
        self._session = session

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in HOP}
        about_task = request.headers.get("mcp-method", "").startswith("tasks/")
        for name in list(headers):
            if name.lower() == "mcp-name" and not about_task:
                headers[name] = here(headers[name])
        try:
            body = json.dumps(asked(json.loads(await request.read()))).encode()
        except ValueError:
            body = await request.read()
        asking = self._session.request(
            request.method, self._url, headers=headers, data=body or None, allow_redirects=False
        )
        async with asking as answer:
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in HOP}
            said = web.StreamResponse(status=answer.status, headers=kept)
            await said.prepare(request)
            with suppress(ConnectionError):
                while line := await answer.content.readline():
                    await said.write(told(line))
                await said.write_eof()
            return said


@asynccontextmanager
async def renamed(url: str) -> AsyncIterator[str]:
    """A hub under the names of the server behind it."""
    async with ClientSession(timeout=ClientTimeout(), read_bufsize=MOST) as session:
        app = web.Application(client_max_size=MOST)
        app.router.add_route("*", "/mcp", Renaming(url, session).pass_on)
        runner = web.AppRunner(app, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        finally:
            await runner.cleanup()


async def through_gateway(url: str, revision: str, folder: Path) -> Outcome:
    """A run of the suite against a hub with a server behind it."""
    node, (address, _, token) = node_or_skip(), url.partition("?token=")
    secret = {"Authorization": f"Bearer {token}"} if token else {}
    server = backend(NAMESPACE, Place("http", url=address), headers=secret)
    async with (
        fronted(folder / "front", server) as there,
        renamed(f"{there.url}?token={await token_of(there, 'ada')}") as front,
    ):
        return await asyncio.to_thread(run_suite, node, front, revision, folder / "results")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.requirement("gateway.callers-era", "gateway.tasks", "mcp.both-eras")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_server_of_both_eras_conforms_through_the_gateway(revision, tmp_path):
    for attempt in ("first", "second"):
        folder = tmp_path / attempt
        folder.mkdir()
        with hub(folder / "behind") as url:
            outcome = run(through_gateway(url, revision, folder), SECONDS)
        failing = {each.name for each in outcome.failing} - WANT_ROOTS
        if not failing and outcome.task_checks == (TASK_CHECKS[revision], 0):
            break
        # The suite waits half a second for some answers, which is little on a busy machine.
    assert failing == set(), outcome.output
    assert len(outcome.scored) == REVISIONS[revision]
    assert outcome.task_checks == (TASK_CHECKS[revision], 0), outcome.output
