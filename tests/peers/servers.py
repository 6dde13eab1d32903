"""Servers from npm, started on any of the transports they speak."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from tests.conformance.node import node_or_skip
from tests.process import environment

Transport: TypeAlias = Literal["stdio", "http", "sse"]

EVERYTHING: Final = Path("@modelcontextprotocol/server-everything/dist/index.js")
FILESYSTEM: Final = Path("@modelcontextprotocol/server-filesystem/dist/index.js")
SPEAKS: Final = {"stdio": "stdio", "http": "streamableHttp", "sse": "sse"}
PATHS: Final = {"http": "/mcp", "sse": "/sse"}

# Loaded before a server: it has it listen on this machine alone, and say on which port.
ANY_PORT: Final = (
    "data:text/javascript,"
    'import{Server}from"node:net";const listen=Server.prototype.listen;'
    "Server.prototype.listen=function(port,...rest){"
    'this.once("listening",()=>console.error("listens on",this.address().port,"now"));'
    'return listen.call(this,{port:Number(port),host:"127.0.0.1"},...rest)}'
)
LISTENS: Final = re.compile(r"listens on (\d+) now")


class Place(NamedTuple):
    """Where a server is: the command that starts it, or its address."""

    transport: Transport
    command: tuple[str, ...] = ()
    url: str = ""


def everything_command() -> tuple[str, ...]:
    """The command of server-everything on standard input and output."""
    node = node_or_skip()
    return (node.binary, str(node.modules / EVERYTHING), "stdio")


def filesystem_command(*folders: Path) -> tuple[str, ...]:
    """The command of server-filesystem for some folders."""
    node = node_or_skip()
    return (node.binary, str(node.modules / FILESYSTEM), *map(str, folders))


def serving_command(transport: Transport) -> list[str]:
    """The command of server-everything over HTTP."""
    node = node_or_skip()
    program = str(node.modules / EVERYTHING)
    return [node.binary, "--import", ANY_PORT, program, SPEAKS[transport]]


@contextmanager
def everything(transport: Transport) -> Iterator[Place]:
    """server-everything on a transport, while entered."""
    if transport == "stdio":
        yield Place(transport, everything_command())
        return
    with listening(serving_command(transport)) as port:
        yield Place(transport, url=f"http://127.0.0.1:{port}{PATHS[transport]}")


@contextmanager
def listening(
    command: Sequence[str], says: re.Pattern[str] = LISTENS, port: int = 0
) -> Iterator[int]:
    """A process that says on stderr on which port it listens; it ends with the context."""
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(PORT=str(port)),
    )
    assert child.stderr
    rest = threading.Thread(target=child.stderr.read)
    try:
        seen = ""
        while not (found := says.search(seen)):
            line = child.stderr.readline()
            assert line, f"the server did not start: {seen}"
            seen += line
        # Read to the end, so that it never waits for us.
        rest.start()
        yield int(found[1])
    finally:
        child.kill()
        child.wait()
        if rest.ident is not None:
            rest.join()
        child.stderr.close()
