"""Clients as people have them sign in by themselves, outlive their tokens, and can be cut off."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from starlette.applications import Starlette

from benchmarks.rivals import FASTMCP, NotInstalled, installed
from tests.clocks import Later
from tests.conformance.node import node_or_skip
from tests.conformance.suite import PROGRAM, REVISIONS
from tests.harness import served
from tests.mcp_harness import meeting
from tests.peers.clients import LEGACY
from tests.peers.model import ROUTES, TOOL
from tests.ports import free_port
from tests.process import environment
from tests.transports.rest.test_apps import App

HERE = Path(__file__).parent
HOUR = 3600
# What `msg_whoami` answers, however often it was quoted on its way.
KNOWN = re.compile(r"handle\W+ada\W")
# Claude Code signs in at a terminal alone.
TERMINAL = (sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])")

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(60),
    pytest.mark.settings(registration="invite"),
]


@pytest.fixture
def clock():
    return Later()


@pytest.fixture
async def ada(hub, clock, tmp_path):
    made = await hub.hub.accounts.add("ada")
    return Person(hub, clock, tmp_path, made)


@pytest.fixture
async def model():
    async with served(Starlette(routes=ROUTES)) as there:
        yield f"http://127.0.0.1:{there.port}"


class Person:
    """Someone whose programs open a browser in which they consent."""

    def __init__(self, hub, clock, folder, made):
        self.hub, self.clock, self.folder, self.account = hub, clock, folder, made.account
        self.log, bin_ = folder / "opened", folder / "bin"
        bin_.mkdir()
        # Programs open either what `BROWSER` names or what the desktop has.
        self.browser = bin_ / "xdg-open"
        command = shlex.join([sys.executable, "-IS", str(HERE / "browser.py")])
        self.browser.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        self.browser.chmod(0o755)
        self.environment = environment(
            BROWSER=str(self.browser),
            BROWSER_LOG=str(self.log),
            BROWSER_TOKEN=made.token,
            HOME=str(folder),
            PATH=f"{bin_}:{Path(node_or_skip().binary).parent}:/usr/bin:/bin",
        )

    @property
    def consents(self):
        return len(self.log.read_text().splitlines())

    async def disconnect(self):
        for app in await self.hub.hub.accounts.apps.list(self.account):
            await self.hub.hub.accounts.authentication.revoke(self.account, app.id)

    async def lives_with(self, call, again=None):
        """One client's life: it signs in, its token expires, its person ends it.

        Then it asks for consent by itself, or once it is told to sign in `again`.
        """
        assert KNOWN.search(await call())
        assert self.consents == 1
        self.clock.ahead += 1.1 * HOUR
        assert KNOWN.search(await call())
        assert self.consents == 1
        await self.disconnect()
        if again is not None:
            assert not KNOWN.search(await call())
            await again()
        assert KNOWN.search(await call())
        assert self.consents == 2

    @asynccontextmanager
    async def started(self, *command, **variables):
        """A program of theirs, while entered."""
        child = await asyncio.create_subprocess_exec(
            *map(str, command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=STDOUT,
            env={**self.environment, **variables},
            cwd=self.folder,
        )
        try:
            yield child
        finally:
            if child.returncode is None:
                child.kill()
            await child.wait()

    async def runs(self, *command, **variables):
        """What a program says until its end."""
        async with self.started(*command, **variables) as child:
            # An end of input at once: some wait for more.
            return (await child.communicate(b""))[0].decode()

    @asynccontextmanager
    async def driving(self, *command):
        """A call of a program that calls `msg_whoami` for each line, and tells the answer."""
        async with self.started(*command) as child:

            async def call():
                child.stdin.write(f"{self.clock.ahead}\n".encode())
                while not (line := (await child.stdout.readline()).decode()).startswith('"'):
                    assert line, "it ended"
                return line

            yield call


def sdk(person, kind):
    """The command of the TypeScript SDK's client."""
    node = node_or_skip()
    # A module finds its packages by where it lies.
    (person.folder / "node_modules").symlink_to(node.modules)
    script = shutil.copy(HERE / "signing_in.mjs", person.folder)
    return node.binary, script, person.hub.url, kind, person.browser, person.folder / "kept.json"


@pytest.mark.parametrize("kind", ["v1", "v2-handshake", "v2-stateless"])
async def test_the_typescript_sdk_signs_in(hub, ada, kind):
    async with ada.driving(*sdk(ada, kind)) as call:
        await ada.lives_with(call)


async def test_five_processes_that_share_one_refresh_token_renew_at_once(ada):
    command = sdk(ada, "v2-stateless")
    async with ada.driving(*command) as call:
        assert KNOWN.search(await call())
    ada.clock.ahead += 1.1 * HOUR
    async with AsyncExitStack() as stack:
        five = [await stack.enter_async_context(ada.driving(*command)) for _ in range(5)]
        told = await asyncio.gather(*(call() for call in five))
        assert all(map(KNOWN.search, told)), told
    assert ada.consents == 1


# The first of the tests that need FastMCP installs it.
@pytest.mark.timeout(600)
async def test_fastmcp_signs_in(hub, ada):
    try:
        python = installed(FASTMCP, "python")
    except NotInstalled as error:
        pytest.skip(f"needs {FASTMCP}: {error}")
    async with ada.driving(python, HERE / "signing_in_fastmcp.py", hub.url) as call:
        await ada.lives_with(call)


async def test_mcp_remote_signs_in(hub, ada):
    node = node_or_skip()
    program = str(node.modules / "mcp-remote/dist/proxy.js")
    told = StdioServerParameters(
        command=node.binary, args=[program, hub.url, "--allow-http"], env=ada.environment
    )
    with (ada.folder / "log").open("w") as log:
        async with Client(stdio_client(told, errlog=log), mode=LEGACY) as client:

            async def call():
                return (await client.call_tool("msg_whoami", {})).content[0].text

            await ada.lives_with(call)


async def test_codex_signs_in(hub, ada, model):
    codex = node_or_skip().modules / "@openai/codex/bin/codex.js"
    (ada.folder / ".codex").mkdir()
    (ada.folder / ".codex/config.toml").write_text(
        'mcp_oauth_credentials_store = "file"\nmodel = "none"\nmodel_provider = "none"\n'
        f'[model_providers.none]\nname = "none"\nbase_url = "{model}/v1"\nwire_api = "responses"\n'
    )

    async def call():
        return await ada.runs(codex, "exec", "--skip-git-repo-check", "Who am I?")

    await ada.runs(codex, "mcp", "add", "hub", "--url", hub.url)
    await ada.lives_with(call, again=lambda: ada.runs(codex, "mcp", "login", "hub"))


async def test_claude_code_signs_in(hub, ada, model):
    claude = next(node_or_skip().modules.glob("@anthropic-ai/claude-code-*/claude"), None)
    if claude is None:
        pytest.skip("npm has no Claude Code for this kind of machine")
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}

    async def login():
        told = await ada.runs(*TERMINAL, claude, "mcp", "login", "hub", **quiet)
        assert "Authenticated" in told, told

    async def call():
        talk = {"ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "none", **quiet}
        return await ada.runs(claude, "-p", "Who am I?", "--allowedTools", TOOL, **talk)

    await ada.runs(claude, "mcp", "add", "--transport", "http", "hub", hub.url, **quiet)
    await login()
    await ada.lives_with(call, again=login)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_hub_conforms_as_an_authorization_server(clock, tmp_path, revision):
    node, port, back = node_or_skip(), free_port(), free_port()
    # A hub says that it reads the documents of apps only where it has a public address.
    public = {"port": port, "public_url": f"http://127.0.0.1:{port}"}
    async with meeting(tmp_path / "hub", clock=clock, **public) as hub:
        ada = Person(hub, clock, tmp_path, await hub.hub.accounts.add("ada"))
        redirects = [f"http://127.0.0.1:{back}/callback"]
        app = await App(hub, "127.0.0.1").register(redirect_uris=redirects)
        words = ["--url", app.issuer, "--client-id", app.id, "--resource", hub.url, "-p", back]
        command = [node.modules / PROGRAM, "authorization", *words, "--spec-version", revision]
        async with ada.started(node.binary, *command) as child:
            said = ""
            while line := (await child.stdout.readline()).decode():
                said += line
                if line.startswith(f"{app.issuer}/authorize?"):
                    await ada.runs(ada.browser, line.strip())
    assert "Total: 3 passed, 0 failed" in said, said


@pytest.mark.parametrize("protocol", ["legacy", "modern"])
async def test_the_inspector_signs_in(hub, ada, protocol):
    node = node_or_skip()
    program = node.modules / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    words = ["--cli", "--server-url", hub.url, "--transport", "http", "--protocol-era", protocol]
    words += ["--method", "tools/call", "--tool-name", "msg_whoami"]
    words += ["--callback-url", f"http://127.0.0.1:{free_port()}/oauth/callback"]
    told = {"MCP_AUTO_OPEN_ENABLED": "true", "MCP_INSPECTOR_SECRET_STORE": "file"}

    async def call():
        return await ada.runs(node.binary, program, *words, **told)

    await ada.lives_with(call)
