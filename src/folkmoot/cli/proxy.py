"""`folkmoot proxy`: inspect, record and change traffic to an MCP server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from folkmoot.cli.call import (
    StartTimeoutOption,
    UpstreamOption,
    UpstreamTransportOption,
    note_start,
)
from folkmoot.cli.credentials import checked_handle, checked_url, login_for, token_source
from folkmoot.cli.options import (
    HeaderOption,
    LogFormatOption,
    LogLevelOption,
    check_place,
    choice,
    command_behind,
    flag,
    number,
    option,
    sent_headers,
    set_command_aside,
    settings_from,
)
from folkmoot.cli.output import (
    announce,
    complain,
    explain_waiting,
    host_and_port,
    run_until_stopped,
)
from folkmoot.cli.proxy_held import held, show_held
from folkmoot.cli.tape.options import places

TAPE: Final = ("--record", "--record-dir")
SEEING: Final = ("--rules", "--interceptor")
NEEDS: Final = {
    "--record-best-effort": (TAPE,),
    "--redact": (TAPE,),
    "--no-redact": (TAPE,),
    "--redaction-key": (TAPE,),
    "--hold-in": (SEEING,),
    "--url": (("--hold-in",),),
    "--as": (("--hold-in",),),
    "--header": (("--upstream",),),
    "--upstream-transport": (("--upstream",),),
    "--pass-header": (("--upstream",), ("--listen",)),
    "--allow-host": (("--listen",),),
}
"""Options that mean nothing alone, each with sets of options of which one must be given."""
EXCLUDES: Final = (
    ("--record", "--record-dir"),
    ("--no-redact", "--redact"),
    ("--no-redact", "--redaction-key"),
)


def check_together(given: Mapping[str, object]) -> None:
    """Refuse options that would be ignored, or that say two things."""
    for one, other in EXCLUDES:
        if given[one] and given[other]:
            raise typer.BadParameter(f"give either {one} or {other}")
    for name, needs in NEEDS.items():
        for needed in needs:
            if given[name] and not any(given[each] for each in needed):
                raise typer.BadParameter(f"{name} needs {' or '.join(needed)}")


ListenOption = Annotated[
    str | None,
    option(
        "--listen", "HOST:PORT",
        "Serve clients over HTTP at /mcp, and HTTP+SSE at /sse; port 0 takes a free one.  "
        "[default: one client on standard input and output]",
    ),
]  # fmt: skip
PassOption = Annotated[
    list[str] | None,
    option("--pass-header", "NAME", "Also pass on this header of clients. May be repeated."),
]
AllowHostOption = Annotated[
    list[str] | None,
    option(
        "--allow-host", "NAME",
        "Also answer requests for this host name; *.NAME matches all its subdomains. May be "
        "repeated.",
    ),
]  # fmt: skip
RecordOption = Annotated[
    Path | None,
    option(
        "--record", "FILE",
        "Record on a tape; if FILE exists, on a numbered one beside it. One named .zst is "
        "compressed.",
    ),
]  # fmt: skip
RecordDirOption = Annotated[
    Path | None,
    option("--record-dir", "DIR", "Record on tapes in this folder, each under a new name."),
]
BestEffortOption = Annotated[
    bool,
    flag(
        "--record-best-effort",
        "Keep going when the tape cannot be written; otherwise the proxy stops passing messages.",
    ),
]
RedactOption = Annotated[
    list[str] | None,
    places(
        "--redact",
        "Also redact this path on the tape, such as $.params.arguments.ssn or $..pin. "
        "May be repeated.",
    ),
]  # fmt: skip
NoRedactOption = Annotated[
    bool,
    flag(
        "--no-redact", "Record secrets and mail unredacted: anyone with the tape can then use them."
    ),
]
KeyOption = Annotated[
    Path | None,
    option(
        "--redaction-key", "FILE",
        "The key that placeholders are made with; created if it does not exist.  [default: one in "
        "the folder of tapes, or your own]",
    ),
]  # fmt: skip
RulesOption = Annotated[
    Path | None,
    option(
        "--rules", "FILE", "Apply these rules to every message; reloaded when the file changes."
    ),
]
PluginOption = Annotated[
    list[str] | None,
    option(
        "--interceptor", "NAME",
        "Apply this interceptor, an entry point of an installed package, to every message. May be "
        "repeated.",
    ),
]  # fmt: skip
HoldInOption = Annotated[
    str | None,
    option(
        "--hold-in", "ROOM",
        "Let people in this room of a hub decide about held messages; everyone in the room can "
        "read them.",
    ),
]  # fmt: skip
RoomHubOption = Annotated[
    str | None,
    option("--url", "URL", "The hub of that room.  [default: that of your account]", checked_url),
]
RoomAsOption = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="HANDLE", callback=checked_handle, show_default=False,
        help="Which of your accounts the proxy uses in that room.  [default: the first]",
    ),
]  # fmt: skip
ErasOption = Annotated[
    str,
    choice(
        "--eras", "HOW", ("bridge", "always", "pass"),
        "Translate between clients and servers of different MCP eras (bridge), also for clients "
        "that ask which era it is (always), or pass everything unchanged (pass).  [default: "
        "bridge]",
    ),
]  # fmt: skip
BytesOption = Annotated[
    int | None,
    number("--max-message-bytes", 1024, 999999999, "Refuse larger messages.  [default: 67108864]"),
]


class ProxyCommand(TyperGroup):
    """Takes everything behind `--` for the server's command, and a word before it for a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the server's command aside."""
        return super().parse_args(ctx, set_command_aside(ctx, args))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command of ours; a server's command in its place is a mistake that is easy to make."""
        found = super().get_command(ctx, cmd_name)
        if found is None and not ctx.resilient_parsing:
            ctx.fail(f"No such command {cmd_name!r} (put a server's command after --)")
        return found


app = typer.Typer(
    cls=ProxyCommand,
    invoke_without_command=True,
    rich_markup_mode=None,
    subcommand_metavar="(--upstream URL | -- COMMAND...)",
)
app.add_typer(held, name="held")


@app.callback()
def proxy(
    ctx: typer.Context,
    *,
    upstream: UpstreamOption = None,
    transport: UpstreamTransportOption = "auto",
    header: HeaderOption = None,
    listen: ListenOption = None,
    pass_header: PassOption = None,
    allow_host: AllowHostOption = None,
    record: RecordOption = None,
    record_dir: RecordDirOption = None,
    record_best_effort: BestEffortOption = False,
    redact: RedactOption = None,
    no_redact: NoRedactOption = False,
    redaction_key: KeyOption = None,
    rules: RulesOption = None,
    interceptor: PluginOption = None,
    hold_in: HoldInOption = None,
    hub: RoomHubOption = None,
    handle: RoomAsOption = None,
    eras: ErasOption = "bridge",
    max_message_bytes: BytesOption = None,
    start_timeout: StartTimeoutOption = 300,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
) -> None:
    """Inspect, record and change traffic to an MCP server.

    Starts the COMMAND after -- and talks to it on its standard input and output, or talks to the
    server at --upstream over HTTP. To its client it looks like that server: put it where the client
    has the server's command or address. Messages pass unchanged unless a rule or interceptor
    changes them.
    """
    command = command_behind(ctx)
    given = {
        "--upstream": upstream, "--upstream-transport": transport != "auto", "--header": header,
        "--listen": listen, "--pass-header": pass_header, "--allow-host": allow_host,
        "--record": record,
        "--record-dir": record_dir, "--record-best-effort": record_best_effort,
        "--redact": redact, "--no-redact": no_redact, "--redaction-key": redaction_key,
        "--rules": rules, "--interceptor": interceptor, "--hold-in": hold_in, "--url": hub,
        "--as": handle,
    }  # fmt: skip
    if ctx.invoked_subcommand is not None:
        check_place(ctx, command, *given.values())
        return
    if bool(command) is bool(upstream):
        raise typer.BadParameter("give either --upstream URL or a command after --")
    check_together(given)
    address = None if listen is None else host_and_port(listen)
    headers = tuple((name.lower(), value) for name, value in sent_headers(header).items())
    loaded = settings_from(None, log_level=log_level, log_format=log_format)

    # Half a second to import, which help and errors need not wait for.
    from folkmoot.clock import SystemClock
    from folkmoot.core.strict import Limits
    from folkmoot.mcp.carrier import PROXY_LIMITS
    from folkmoot.proxy.tape import TapeSide
    from folkmoot.relay.proxy import (
        DecisionPlace,
        Interception,
        ProxiedServer,
        ProxyOptions,
        assembled,
    )
    from folkmoot.relay.recording import Recording
    from folkmoot.telemetry import logs

    place = None
    if hold_in is not None:
        login = login_for(hub, handle)
        place = DecisionPlace(login.hub, hold_in, token_source(login))
    logs.configure(loaded.settings.log.level, loaded.settings.log.format)
    limits = PROXY_LIMITS
    if max_message_bytes is not None:
        limits = Limits(max_message_bytes, PROXY_LIMITS.nesting)

    async def run() -> None:
        async with assembled(
            ProxiedServer(command, upstream or "", transport, headers),  # type: ignore[arg-type]
            SystemClock(),
            client=TapeSide("stdio" if address is None else "http"),
            recording=Recording(
                file=record,
                folder=record_dir,
                best_effort=record_best_effort,
                redact=not no_redact,
                paths=tuple(redact or ()),
                key_file=redaction_key,
            ),
            interception=Interception(rules, tuple(interceptor or ()), place),
            options=ProxyOptions(
                limits=limits,
                eras=eras != "pass",
                discoverable=eras == "always",
                headers=tuple(pass_header or ()),
                allowed_hosts=tuple(allow_host or ()),
                start_seconds=float(start_timeout),
                notify=note_start,
            ),
            on_held=show_held,
        ) as made:
            show_place(record, made.steps.recorder)
            remember_place(record_dir, made.steps.recorder)
            if address is None:
                explain_waiting("for HTTP clients, use --listen")
                await made.serve_stdio()
                return
            async with made.listening(*address) as url:
                announce("The proxy listens at", url)
                await made.ended()

    run_until_stopped(run())


def show_place(chosen: Path | None, recorder: Any) -> None:
    """Say which tape is recorded on, where the chosen one is there already."""
    if chosen is not None and recorder.path != chosen:
        complain(f"{chosen} exists, so this recording goes to {recorder.path}.", kind="note")


def remember_place(folder: Path | None, recorder: Any) -> None:
    """Have a hub of this user find the tapes."""
    if recorder is not None:
        from folkmoot.datafolder.proxies import remember

        remember(folder or recorder.path)
