"""`python -m tests.conformance.drive gateway|auth|call URL`: use the suite's server as a client.

The suite starts it for each of its client scenarios. `gateway` puts the server behind a hub and
uses it there with the SDK's client; `call` uses it with `folkmoot call`. Both use everything that
the server lists, so a tool that a client must not call has to be missing from the list. `auth` has
a person sign in to the server behind a hub, and then call its tools.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from tests.peers.clients import Ears
from tests.peers.gateway import backend, fronted, guest, reaches, token_of
from tests.peers.protected import Person
from tests.peers.servers import Place

NAMESPACE: Final = "suite"
# Otherwise schemas are listed without what the APIs of models refuse.
WHOLE: Final = "&names=canonical"
SAMPLES: Final = {"number": 5, "integer": 3, "boolean": True, "array": [], "object": {}}
# How long a server may take to be listed; one that lets nobody in never is.
LISTED_SECONDS: Final = 3.0
# What the suite takes for the document about a client.
CLIENT_DOCUMENT: Final = "https://conformance-test.local/client-metadata.json"
# The tool whose schema another tool wants to be told as it was listed.
FOCAL_TOOL: Final = "json_schema_2020_12_tool"


def arguments(name: str, tools: dict[str, Any]) -> dict[str, Any]:
    """What to call a tool with: what the suite says, or something of each required type."""
    said = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}").get("toolCalls", ())
    for each in said:
        if each["name"] == name:
            given: dict[str, Any] = each["arguments"]
            return given
    schema = tools[name]
    if FOCAL_TOOL in tools and "schema" in schema.get("properties", {}):
        return {"schema": tools[FOCAL_TOOL]}
    properties = schema.get("properties", {})
    return {
        each: SAMPLES.get(properties[each].get("type"), "x") for each in schema.get("required", ())
    }


class DefaultsClient(Ears):
    """A client that accepts every form as it is: with its defaults, and yes where there is none."""

    async def elicit(self, _: Any, params: types.ElicitRequestParams) -> Any:
        asked = params.model_dump(by_alias=True)["requestedSchema"]["properties"]
        content = {name: each.get("default", True) for name, each in asked.items()}
        return types.ElicitResult(action="accept", content=content)


async def through_the_gateway(url: str, era: str) -> None:
    """Use everything of the server through a hub that it is behind."""
    place = Place("http", url=url)
    with TemporaryDirectory(prefix="folkmoot-drive-") as folder:
        async with (
            fronted(Path(folder), backend(NAMESPACE, place), era=era) as there,
            guest(there, await token_of(there, "ada"), DefaultsClient(), query=WHOLE) as client,
        ):
            prefix = f"{NAMESPACE}:"
            tools = {
                each.name.removeprefix(prefix): each.input_schema
                for each in (await client.list_tools()).tools
                if each.name.startswith(prefix)
            }
            for name in tools:
                with suppress(MCPError):
                    # Some of the suite's servers list tools that they do not have.
                    await client.call_tool(prefix + name, arguments(name, tools))
            for resource in (await client.list_resources()).resources:
                if str(resource.uri).startswith(f"{NAMESPACE}://"):
                    await client.read_resource(str(resource.uri))
            for prompt in (await client.list_prompts()).prompts:
                if prompt.name.startswith(prefix):
                    await client.get_prompt(prompt.name)


class Consenting(Ears):
    """A client whose person signs in wherever they are led."""

    def __init__(self, person: Person) -> None:
        super().__init__()
        self._person = person

    async def elicit(self, _: Any, params: types.ElicitRequestParams) -> Any:
        sys.stderr.write(f"{await self._person.follow(params.url)}\n")
        return types.ElicitResult(action="accept")


async def signing_in(url: str, era: str) -> None:
    """Have a person sign in to the server, and call what it lists twice."""
    told = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    given = {name: told[name] for name in ("client_id", "client_secret") if name in told}
    if os.environ["MCP_CONFORMANCE_SCENARIO"] == "auth/basic-cimd":
        given = {"client_id": CLIENT_DOCUMENT}
    spec = backend(NAMESPACE, Place("http", url=url), auth="oauth", **given)
    with TemporaryDirectory(prefix="folkmoot-drive-") as folder:
        async with fronted(Path(folder), spec, era=era, reached=False) as there:
            person = Person(there.port, "ada", await token_of(there, "ada"))
            while (await person.connections())[NAMESPACE]["state"] != "live":
                said = await person.sign_in(namespace=NAMESPACE)
                if said != NAMESPACE:
                    # Where nobody must sign in, that is what is wanted.
                    sys.stderr.write(f"{said}\n")
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(LISTED_SECONDS):
                        await reaches(there.hub, NAMESPACE)
            async with guest(there, person.token, Consenting(person), query=WHOLE) as client:
                names = [each.name for each in (await client.list_tools()).tools]
                for name in [each for each in names if each.startswith(f"{NAMESPACE}:")] * 2:
                    with suppress(MCPError):
                        sys.stderr.write(f"{await client.call_tool(name, {})}\n")


def by_hand(url: str) -> None:
    """Use everything of the server with `folkmoot call`."""
    offer = json.loads(folkmoot_call(url, "--json"))
    tools = {each["name"]: each["inputSchema"] for each in offer.get("tools") or ()}
    for name in tools:
        given = json.dumps(arguments(name, tools))
        folkmoot_call(url, name, "--arguments", given, may_fail=True)
    for resource in offer.get("resources") or ():
        folkmoot_call(url, "--read", resource["uri"])
    for prompt in offer.get("prompts") or ():
        folkmoot_call(url, "--prompt", prompt["name"])


def folkmoot_call(*words: str, may_fail: bool = False) -> str:
    """What the command says; an error is passed on, for the suite to show."""
    command = [sys.executable, "-m", "folkmoot", "call", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode and not may_fail:
        sys.stderr.write(f"{words[1:]} failed: {done.stdout}\n")
        raise SystemExit(done.returncode)
    return done.stdout


def main(way: str, url: str) -> None:
    """What the suite runs."""
    stateless = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"] == "2026-07-28"
    if way == "call":
        by_hand(url)
    else:
        drive = signing_in if way == "auth" else through_the_gateway
        asyncio.run(drive(url, "stateless" if stateless else "handshake"))


if __name__ == "__main__":
    main(*sys.argv[1:])
