"""`folkmoot proxy`: stand in front of an MCP server, and see, record or change what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperGroup

from folkmoot.cli.credentials import read_keyring
from folkmoot.cli.headers import HeaderOption, sent_headers
from folkmoot.cli.looping import announce, host_and_port, run_until_stopped, tell_waiting
from folkmoot.cli.options import LogFormatOption, LogLevelOption, check_place, settings_from
from folkmoot.cli.output import complain
from folkmoot.cli.proxy_held import held, tell_held
from folkmoot.cli.proxy_options import (
    AllowHostOption,
    BestEffortOption,
    BytesOption,
    ErasOption,
    HoldInOption,
    KeyOption,
    ListenOption,
    NoRedactOption,
    PassOption,
    PluginOption,
    RecordDirOption,
    RecordOption,
    RedactOption,
    RoomAsOption,
    RoomHubOption,
    RulesOption,
    TransportOption,
    UpstreamOption,
    check_together,
)

COMMAND: Final = "folkmoot.proxy.command"


class BeforeCommand(TyperGroup):
    """Takes everything behind `--` for the server's command, and a word before it for a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the server's command aside."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command of ours; a server's command in its place is a mistake that is easy to make."""
        found = super().get_command(ctx, cmd_name)
        if found is None and not ctx.resilient_parsing:
            ctx.fail(f"No such command {cmd_name!r} (put a server's command after --)")
        return found


app = typer.Typer(
    cls=BeforeCommand,
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
    transport: TransportOption = "auto",
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
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
) -> None:
    """Inspect, record and change traffic to an MCP server.

    Starts the COMMAND after -- and talks to it on its standard input and output, or talks to the
    server at --upstream over HTTP. To its client it looks like that server: put it where the client
    has the server's command or address. Messages pass unchanged unless a rule or interceptor
    changes them.
    """
    command: tuple[str, ...] = ctx.meta.get(COMMAND, ())
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
        login = read_keyring().find(hub, handle)
        place = DecisionPlace(login.hub, hold_in, login.token)
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
            ),
            on_held=tell_held,
        ) as made:
            tell_where(record, made.steps.recorder)
            remember_place(record_dir, made.steps.recorder)
            if address is None:
                tell_waiting("for HTTP clients, use --listen")
                await made.serve_stdio()
                return
            async with made.listening(*address) as url:
                announce("The proxy listens at", url)
                await made.ended()

    run_until_stopped(run())


def tell_where(chosen: Path | None, recorder: Any) -> None:
    """Say which tape is recorded on, where the chosen one is there already."""
    if chosen is not None and recorder.path != chosen:
        complain(f"{chosen} exists, so this recording goes to {recorder.path}.", kind="note")


def remember_place(folder: Path | None, recorder: Any) -> None:
    """Have a hub of this user find the tapes."""
    if recorder is not None:
        from folkmoot.datafolder.recordings import remember

        remember(folder or recorder.path)
