"""`folkmoot connect`: add a hub to an MCP client, in the client's own settings file."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from folkmoot.cli.client_files import put_json_entry, put_toml_entry
from folkmoot.cli.credentials import (
    AsOption,
    HubOption,
    Login,
    fits,
    hub_at,
    hub_for,
    read_keyring,
)
from folkmoot.cli.limits import MAX_CLIENT_FILE_BYTES
from folkmoot.cli.options import flag, option
from folkmoot.cli.output import PROGRAM, complain, say
from folkmoot.cli.show import word
from folkmoot.core import errors as e
from folkmoot.staging import staged
from folkmoot.web.clients import CLIENTS, NAME, Client

MASKED = "sk_…"
"""Stands for the token wherever an entry is shown."""

HOMES: dict[str, dict[str, str]] = {
    "linux": {
        "config": "{XDG_CONFIG_HOME}",
        "goose": "{XDG_CONFIG_HOME}/goose",
        "zed": "{XDG_CONFIG_HOME}/zed",
    },
    "darwin": {
        "config": "~/Library/Application Support",
        "goose": "~/.config/goose",
        "zed": "~/.config/zed",
    },
    "win32": {
        "config": "{APPDATA}",
        "goose": "{APPDATA}/Block/goose/config",
        "zed": "{APPDATA}/Zed",
    },
}
"""Where each platform keeps the settings of programs."""

FILES = {
    "claude-desktop": "{config}/Claude/claude_desktop_config.json",
    "claude-code": "{CLAUDE_CONFIG_DIR}/.claude.json",
    "vscode": "{config}/Code/User/mcp.json",
    "cursor": "~/.cursor/mcp.json",
    "codex": "{CODEX_HOME}/config.toml",
    "gemini": "~/.gemini/settings.json",
    "windsurf": "~/.codeium/windsurf/mcp_config.json",
    "zed": "{zed}/settings.json",
    "goose": "{goose}/config.yaml",
}
"""Where each client keeps its list of MCP servers, as it documents it."""


def known_client(value: str) -> str:
    """A client's name, checked."""
    if value not in CLIENTS:
        *others, last = CLIENTS
        raise typer.BadParameter(f"must be {', '.join(others)} or {last}, not {value!r}")
    return value


ClientArgument = Annotated[
    str,
    typer.Argument(
        metavar="CLIENT",
        help="claude-desktop, claude-code, vscode, cursor, codex, gemini, windsurf, zed, goose, or "
        "mcpservers for any other.",
        callback=known_client,
        autocompletion=lambda: list(CLIENTS),
        show_default=False,
    ),
]
FileOption = Annotated[
    Path | None,
    option("--file", "FILE", "The client's settings file.  [default: where the client keeps it]"),
]
NameOption = Annotated[str, option("--name", "NAME", "What the client calls the hub.")]
DryRunOption = Annotated[bool, flag("--dry-run", "Show the change, but do not write it.")]
NoTokenOption = Annotated[bool, flag("--no-token", "Do not include your token.")]
SearchOption = Annotated[
    bool,
    flag(
        "--search", "List only two tools to the client: one finds the other tools, one calls them."
    ),
]
BridgeOption = Annotated[
    bool,
    flag("--bridge", "Have the client start 'folkmoot bridge', which encrypts mail end to end."),
]
ScopeOption = Annotated[
    str | None,
    option(
        "--scope", "SCOPES",
        "Create a token for the client that can do only this, such as 'mail.read rooms:square'; "
        "'folkmoot tokens create --help' lists the scopes.  [default: your own token]",
    ),
]  # fmt: skip
ForceOption = Annotated[bool, flag("--force", "Replace an existing entry of that name.")]


def connect(
    client: ClientArgument,
    file: FileOption = None,
    name: NameOption = NAME,
    url: HubOption = None,
    handle: AsOption = None,
    *,
    dry_run: DryRunOption = False,
    no_token: NoTokenOption = False,
    search: SearchOption = False,
    bridge: BridgeOption = False,
    scope: ScopeOption = None,
    force: ForceOption = False,
) -> None:
    """Add your hub to an MCP client's settings file.

    Everything else in the file stays as it is, including comments, and a copy of the previous file
    is kept beside it. If the file can't be parsed, it is not changed. If you have an account on the
    hub, its token is written too; with --bridge it is not, since the bridge has it. With --scope a
    new token is created for the client, which can do no more than that.

    Goose keeps its settings in YAML, which is not edited: the lines to paste are printed.
    """
    known = CLIENTS[client]
    if not name.isprintable() or not name.strip():
        raise typer.BadParameter("--name must be a name")
    if bridge and (search or no_token):
        raise typer.BadParameter("--bridge goes with neither --search nor --no-token")
    if scope is not None and not scope.strip():
        raise typer.BadParameter(
            "--scope must name a scope; 'folkmoot tokens create --help' lists them"
        )
    if scope and (bridge or no_token):
        raise typer.BadParameter("--scope goes with neither --bridge nor --no-token")
    if bridge:
        login = read_keyring().find(url, handle)
        hub, token = login.hub, ""
    else:
        hub, token = meant(url, handle, no_token=no_token, needed=scope is not None)

    def entry(token: str) -> dict[str, Any]:
        if bridge:
            return bridge_entry(known, name, login)
        return known.entry(name, f"{hub}/mcp{'?tools=search' if search else ''}", token)

    shown = entry(MASKED if token else "")
    path = settings_file(known, file) if known.format in PUT else None
    text = None if path is None else read(path)
    if path is not None:
        # Before a token is created, which nobody would use if the file cannot be changed.
        put_entry(known, path, text, name, shown, force=force)
    if dry_run:
        if path is None:
            paste(known, file, {name: shown}, has_token=False)
        else:
            say(f"In {path}:", err=True)
            say(known.text({known.member: {name: shown}}))
        return
    with token_for(known, hub, token, scope) as given:
        if path is None:
            paste(known, file, {name: entry(given)}, has_token=bool(given))
        else:
            changed = put_entry(known, path, text, name, entry(given), force=force)
            kept = put(path, text, changed)
            what = f"the bridge for {hub}" if bridge else hub
            say(f"Added {what} to {known.name if client in FILES else 'the client'}, in {path}.")
            if kept is not None:
                say(f"The previous file is {kept}.")
    if path is None:
        return
    if not token and not bridge:
        say(
            "No token was written. The client signs you in with a browser, or ask your assistant "
            "to register you."
        )
    say("Restart the client to use it.")


def put_entry(
    client: Client, path: Path, text: str | None, name: str, entry: dict[str, Any], *, force: bool
) -> str:
    """The text of a settings file with an entry."""
    try:
        return PUT[client.format](text or "", client.member, name, entry, force=force)
    except e.ClientFileUnusable as error:
        raise e.ClientFileUnusable(f"{path}: {error.message}") from None


@contextmanager
def token_for(client: Client, hub: str, token: str, scope: str | None) -> Iterator[str]:
    """The token to write: one's own, or with a scope a new one, unless it could not be written."""
    if scope is None:
        yield token
        return
    asked = hub_at(hub, token)
    made = asked.create_credential(scope=scope, label=client.name)
    try:
        yield made.token
    except BaseException:
        with suppress(e.FolkmootError):
            asked.revoke_credential(made.id)
        raise
    what, id_ = word(made.scope), word(made.id)
    say(f"Its token can do no more than: {what}. 'folkmoot tokens revoke {id_}' revokes it.")


def paste(client: Client, file: Path | None, entries: dict[str, Any], *, has_token: bool) -> None:
    """Print the lines that belong in a settings file that is not edited here."""
    path = default_file(client.id, sys.platform, os.environ) if file is None else file
    say(f"Add these lines to {path}:", err=True)
    say(client.text({client.member: entries}))
    if has_token:
        complain("the lines contain your token. Keep them to yourself.", kind="hint")
    say(f"If it has '{client.member}:' already, add only what is below that line.", err=True)
    say("Then restart the client.", err=True)


PUT = {"json": put_json_entry, "toml": put_toml_entry}
"""What puts an entry into a file of each format; an entry of YAML is printed, to be pasted."""


def bridge_entry(client: Client, name: str, login: Login) -> dict[str, Any]:
    """The entry of a client that starts the bridge itself, as one account."""
    arguments = ["bridge", "--url", login.hub, "--as", login.handle]
    program = shutil.which(PROGRAM)
    if program is not None:
        return client.started(name, str(Path(program).absolute()), arguments)
    return client.started(name, sys.executable, ["-m", PROGRAM, *arguments])


def meant(url: str | None, handle: str | None, *, no_token: bool, needed: bool) -> tuple[str, str]:
    """The hub and the token to write; unless it is needed, none for someone without an account."""
    keyring = read_keyring()
    if handle is not None or needed:
        login = keyring.find(url, handle)
        if needed and login.client_id:
            raise e.CommandFailed(
                f"{login.name} is signed in here by 'folkmoot login', which cannot create tokens. "
                "Leave --scope out: you choose what the client can do when it signs in."
            )
        return login.hub, "" if no_token or login.client_id else login.token
    hub = hub_for(keyring, url)
    first = next((kept for kept in keyring.accounts if fits(kept, hub, None)), None)
    # What 'folkmoot login' got is renewed every hour, and for nobody else to use.
    return hub, "" if no_token or first is None or first.client_id else first.token


def settings_file(client: Client, given: Path | None) -> Path:
    """The client's settings file; a path in a missing folder is refused."""
    if given is not None:
        path = given.expanduser().absolute()
    elif client.id in FILES:
        path = default_file(client.id, sys.platform, os.environ)
    else:
        raise typer.BadParameter("--file is needed for this client")
    # Through a link to the file itself, which a whole new file would otherwise replace.
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        asked = "" if given else f" Is {client.name} installed? --file names another file."
        raise e.ClientFileUnusable(f"{path.parent}: there is no such folder.{asked}")
    return path


def default_file(client: str, platform: str, environ: Mapping[str, str]) -> Path:
    """Where a client keeps its settings on a platform."""
    homes = HOMES.get(platform, HOMES["linux"])
    values = {
        "XDG_CONFIG_HOME": environ.get("XDG_CONFIG_HOME") or "~/.config",
        "APPDATA": environ.get("APPDATA") or "~/AppData/Roaming",
        "CLAUDE_CONFIG_DIR": environ.get("CLAUDE_CONFIG_DIR") or "~",
        "CODEX_HOME": environ.get("CODEX_HOME") or "~/.codex",
    }
    homes = {name: home.format(**values) for name, home in homes.items()}
    return Path(FILES[client].format(**values, **homes)).expanduser()


def read(path: Path) -> str | None:
    """The text of a file; None when there is none."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_CLIENT_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise e.ClientFileUnusable(f"{path}: {(error.strerror or 'unreadable').lower()}.") from None
    try:
        if len(raw) <= MAX_CLIENT_FILE_BYTES:
            return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise e.ClientFileUnusable(
            f"{path}: it is not UTF-8 text, so it was not changed."
        ) from None
    raise e.ClientFileUnusable(f"{path}: it is larger than 32 MiB, so it was not changed.")


def put(path: Path, before: str | None, after: str) -> Path | None:
    """Write the whole file at once; the answer is where the file as it was is kept, if one was."""
    try:
        kept = None if before is None else back_up(path)
        write(path, before, after)
    except OSError as error:
        raise e.ClientFileUnusable(f"{path}: {(error.strerror or 'unwritable').lower()}.") from None
    return kept


def back_up(path: Path) -> Path:
    """A copy of the file beside it, under a name that is free."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        kept = path.with_name(f"{path.name}.{stamp}{f'-{number}' if number else ''}.bak")
        with suppress(FileExistsError):
            os.close(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            shutil.copyfile(path, kept)
            return kept
    raise e.ClientFileUnusable(f"{path}: no copy of it can be made.")


def check_unchanged(path: Path, before: str | None) -> None:
    """Refuse to undo what another program wrote meanwhile."""
    if read(path) != before:
        raise e.ClientFileUnusable(f"{path}: another program has just changed it. Try again.")


def write(path: Path, before: str | None, after: str) -> None:
    """Put a whole new file in the place of the old one, with its permissions."""
    mode = 0o600 if before is None else stat.S_IMODE(path.stat().st_mode)
    with staged(path, after.encode(), mode) as part:
        check_unchanged(path, before)
        part.replace(path)
    if mode & 0o077 and "Bearer " in after:
        complain(
            f"others can read {path}, which holds your token. Run 'chmod 600' on it.",
            kind="warning",
        )
