"""`folkmoot call`: list what an MCP server offers, call a tool, read a resource, get a prompt."""

from __future__ import annotations

import difflib
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import typer
from msgspec import Struct

from folkmoot.cli.options import (
    HeaderOption,
    JsonOption,
    ServerCommand,
    argument,
    choice,
    command_behind,
    number,
    option,
    sent_headers,
    typed_arguments,
)
from folkmoot.cli.output import ExitCode, complain, run_until_stopped, say_data
from folkmoot.cli.show import word
from folkmoot.core import errors as e
from folkmoot.mcp.wire import PROMPTS_GET, RESOURCES_READ, TOOLS_CALL, TOOLS_LIST

if TYPE_CHECKING:
    from folkmoot.cli.call_show import ServerOffer
    from folkmoot.mcp.carrier import Connect
    from folkmoot.relay.caller import PlainClient, Wish


def server_url(value: str | None) -> Any:
    """The server's address, checked before the command begins."""
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        right = False
    if not right:
        raise typer.BadParameter("must be a URL such as https://example.org/mcp")
    return value


UpstreamOption = Annotated[
    str | None,
    typer.Option(
        "--upstream", metavar="URL", show_default=False, callback=server_url,
        help="The server's address; without it, the server is the COMMAND after --.",
    ),
]  # fmt: skip


UpstreamTransportOption = Annotated[
    str,
    choice(
        "--upstream-transport", "KIND", ("auto", "http", "sse"),
        "The server's transport: Streamable HTTP (http) or the older HTTP+SSE (sse).  [default: "
        "auto, detected]",
    ),
]  # fmt: skip


WEB: Final = ("http://", "https://")
NO_SUCH_TOOL: Final = (None, "unknown_tool")
"""What an error says in `data.code` that is about the name; only hubs say anything there."""

WordsArgument = Annotated[
    list[str] | None,
    argument(
        "WORD",
        "The server's URL, unless there is a COMMAND after --; then the TOOL and its arguments. "
        "Without a tool, lists what the server offers.",
    ),
]
ReadOption = Annotated[
    str | None, option("--read", "URI", "Read this resource instead of calling a tool.")
]
PromptOption = Annotated[
    str | None, option("--prompt", "NAME", "Get this prompt instead; KEY=VALUE are its arguments.")
]
WholeOption = Annotated[
    str | None,
    option(
        "--arguments", "JSON",
        "All arguments as one JSON object: the JSON itself, @FILE, or - for standard input.",
    ),
]  # fmt: skip
EraOption = Annotated[
    str,
    choice(
        "--era", "ERA", ("auto", "stateless", "handshake"),
        "The era of MCP to use.  [default: auto, the newest that the server supports]",
    ),
]  # fmt: skip
TransportOption = Annotated[
    str,
    choice(
        "--transport", "KIND", ("auto", "http", "sse"),
        "The transport of the server at URL: Streamable HTTP (http) or the older HTTP+SSE (sse).  "
        "[default: auto, detected]",
    ),
]  # fmt: skip
TimeoutOption = Annotated[
    int, number("--timeout", 1, 3600, "Wait up to N seconds for each answer.  [default: 60]")
]


StartTimeoutOption = Annotated[
    int,
    number(
        "--start-timeout", 1, 3600,
        "Wait up to N seconds for the first word of a COMMAND, which may have to download its "
        "server.  [default: 300]",
    ),
]  # fmt: skip


def note_start(message: str) -> None:
    """Say that a server is waited for."""
    complain(message, kind="note")


class CallCommand(ServerCommand):
    """Shows in its usage what the words stand for."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """What stands behind the command's name in its usage."""
        return ["[OPTIONS]", "[URL] [TOOL [KEY=VALUE]...] [-- COMMAND...]"]


class CallOptions(Struct, frozen=True, kw_only=True):
    """What is to be done at a server, and how."""

    tool: str = ""
    pairs: tuple[str, ...] = ()
    uri: str | None = None
    prompt: str | None = None
    whole: str | None = None
    era: str = "auto"
    seconds: int = 60
    as_json: bool = False
    own_names: tuple[str, ...] = ()
    """What may stand before a tool's own name, such as a backend's namespace."""

    def check(self) -> None:
        """Refuse what says two things, or means nothing."""
        if sum(map(bool, (self.tool, self.uri, self.prompt))) > 1:
            raise typer.BadParameter("give a TOOL, or --read, or --prompt")
        if (self.pairs or self.whole) and not (self.tool or self.prompt):
            raise typer.BadParameter("arguments are for a tool or a --prompt; give its name first")


def call(
    ctx: typer.Context,
    words: WordsArgument = None,
    read: ReadOption = None,
    prompt: PromptOption = None,
    arguments: WholeOption = None,
    era: EraOption = "auto",
    transport: TransportOption = "auto",
    header: HeaderOption = None,
    timeout: TimeoutOption = 60,
    start_timeout: StartTimeoutOption = 300,
    *,
    as_json: JsonOption = False,
) -> None:
    """Use an MCP server by hand: list, call, read.

    The server is at a URL, or is started with the COMMAND after --. A value is converted to the
    type in the tool's schema; KEY:=JSON sends any JSON. Log messages and progress are shown on
    standard error. The exit code is 1 when the server or the tool returns an error.
    """
    command, given = command_behind(ctx), list(words or ())
    url = ""
    if not command:
        if not given or not given[0].startswith(WEB):
            raise typer.BadParameter("give the server's URL, or its command after --")
        url = server_url(given.pop(0))
    if header and not url:
        raise typer.BadParameter("--header needs the URL of a server")
    tool, pairs = split(given, named=prompt is not None or read is not None)
    wanted = CallOptions(
        tool=tool, pairs=pairs, uri=read, prompt=prompt, whole=arguments, era=era,
        seconds=timeout, as_json=as_json,
    )  # fmt: skip
    wanted.check()
    headers = tuple((name.lower(), value) for name, value in sent_headers(header).items())

    async def run() -> bool:
        # Half a second to import, which help and errors need not wait for.
        from folkmoot.clock import SystemClock
        from folkmoot.relay.proxy import ProxiedServer, ProxyOptions

        server = ProxiedServer(tuple(command), url, transport, headers)  # type: ignore[arg-type]
        options = ProxyOptions(start_seconds=float(start_timeout), notify=note_start)
        async with server.upstream(SystemClock(), options) as there:
            return await perform(there.connect, wanted)

    finish(run_until_stopped(run()))


def split(words: Sequence[str], *, named: bool) -> tuple[str, tuple[str, ...]]:
    """The tool and its arguments; where something else is named, all words are arguments."""
    if named or not words or "=" in words[0]:
        return "", tuple(words)
    return words[0], tuple(words[1:])


def finish(done: bool | None) -> None:  # noqa: FBT001
    """Exit with the code that the outcome of the call stands for."""
    if done is None:
        raise KeyboardInterrupt
    if not done:
        raise typer.Exit(ExitCode.FAILED)


async def perform(connect: Connect, wanted: CallOptions) -> bool:
    """Do what is wanted at one server; whether the answer was no error."""
    from folkmoot.cli.call_show import show_notice, show_offer, show_result
    from folkmoot.relay.caller import calling

    wish: Wish = wanted.era  # type: ignore[assignment]
    began = time.monotonic()
    async with calling(
        connect, era=wish, seconds=float(wanted.seconds), on_notice=show_notice
    ) as caller:
        if not (wanted.tool or wanted.uri or wanted.prompt):
            offer = await offered(caller)
            if wanted.as_json:
                say_data(offer)
            else:
                show_offer(offer, time.monotonic() - began)
            return True
        request = await request_for(caller, wanted)
        method, params, what = request.method, request.params, request.subject
        began = time.monotonic()
        try:
            result = await caller.result(method, params)
        except e.ServerRefused as error:
            if request.unlisted and error.data.get("told", {}).get("code") in NO_SUCH_TOOL:
                raise e.UnknownTool(request.unlisted) from None
            raise
        seconds = time.monotonic() - began
        if wanted.as_json:
            say_data(result)
        else:
            show_result(result, what, seconds, caller)
    failed = result.get("isError") is True
    if failed and not wanted.as_json:
        unlisted = " The server does not list this tool." if request.unlisted else ""
        complain(f"{word(what)} failed; what it says is above.{unlisted}")
    return not failed


async def offered(caller: PlainClient) -> ServerOffer:
    """Everything a server lists; what it does not say it has is not asked for."""
    from folkmoot.cli.call_show import LISTS, ServerOffer

    found: dict[str, Any] = {}
    for name, method, member, _ in LISTS:
        if method.partition("/")[0] in caller.capabilities:
            found[name] = await listed(caller, method, member)
    return ServerOffer(
        server=caller.info,
        era=caller.era.value,
        version=caller.version,
        instructions=caller.instructions,
        **found,
    )


async def listed(
    caller: PlainClient, method: str, member: str, wanted: str = ""
) -> list[dict[str, Any]]:
    """A list of the server's, without the tools that no client may use."""
    from folkmoot.core.session import Era
    from folkmoot.mcp.client.headers import wrong_mark

    found = await caller.listed(method, member)
    if method != TOOLS_LIST or caller.era is not Era.STATELESS:
        return found
    usable = []
    for tool in found:
        wrong = wrong_mark(tool.get("inputSchema"))
        if not wrong:
            usable.append(tool)
        elif tool.get("name") == wanted:
            raise e.UnknownTool(f"{word(wanted)} cannot be called: in its schema, {wrong}.")
        else:
            name = word(tool.get("name"))
            complain(f"{name} is left out: in its schema, {wrong}.", kind="warning")
    return usable


class ServerRequest(Struct, frozen=True):
    """A request to send, the name of its subject, and what to say if there is no such tool."""

    method: str
    params: dict[str, Any]
    subject: str
    unlisted: str = ""


async def request_for(caller: PlainClient, wanted: CallOptions) -> ServerRequest:
    """The request to send.

    A tool that is not listed is called all the same, with arguments read by their look: only the
    server can say whether there is no such tool, or not for this caller.
    """
    if wanted.uri:
        return ServerRequest(RESOURCES_READ, {"uri": wanted.uri}, wanted.uri)
    if wanted.prompt:
        texts: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
        texts["properties"] = {each.partition("=")[0]: {"type": "string"} for each in wanted.pairs}
        given = typed_arguments(wanted.pairs, texts, wanted.whole)
        params = {"name": wanted.prompt, "arguments": given}
        return ServerRequest(PROMPTS_GET, params, wanted.prompt)
    tools = await listed(caller, TOOLS_LIST, "tools", wanted.tool)
    by_name = {each["name"]: each for each in tools if isinstance(each.get("name"), str)}
    name, unlisted = named_tool(by_name, wanted)
    schema = by_name[name].get("inputSchema") if name in by_name else None
    given = typed_arguments(wanted.pairs, schema, wanted.whole)
    return ServerRequest(TOOLS_CALL, {"name": name, "arguments": given}, name, unlisted)


def named_tool(names: Collection[str], wanted: CallOptions) -> tuple[str, str]:
    """The tool that was named; if it is not listed, also what to say where it does not exist."""
    for prefix in ("", *wanted.own_names):
        if wanted.tool.startswith(prefix) and (name := wanted.tool[len(prefix) :]) in names:
            return name, ""
    near = difflib.get_close_matches(wanted.tool, names, n=3)
    like = f" Did you mean {' or '.join(map(word, near))}?" if near else ""
    return wanted.tool, f"The server has no tool {word(wanted.tool)}.{like}"


CLASSES = {"call": CallCommand}
