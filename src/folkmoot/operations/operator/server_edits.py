"""Servers that are added, tested and removed while the hub runs.

That runs programs on the hub's machine. Over the network it needs the scope `operate`, and the
operator shows that they are there: a browser that is left open, or a page that was tricked, is not
enough. The setting `gateway.edit_from_web` switches it off.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.gateway.trial import Tried, tried
from folkmoot.operations.declare import delete, patch, post
from folkmoot.operations.limits import MAX_SERVER_TEXT
from folkmoot.operations.operator.pasted import Described, described
from folkmoot.operations.operator.servers import Namespace, operator
from folkmoot.operations.presence import check_present
from folkmoot.operations.rate_limits import OWN_GUESSES
from folkmoot.operations.records import leave_line
from folkmoot.operations.row import Absent, AuditSpec, describe, view_of
from folkmoot.settings.editing import (
    BACKENDS,
    is_in_file,
    with_backend,
    with_value,
    without_backend,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.operations.call import Call
    from folkmoot.operations.operator.servers import Reloading
    from folkmoot.settings import BackendSpec, Loaded

PATH: Final = "/v1/servers"
OFF: Final = (
    "Servers and groups cannot be changed over the network: gateway.edit_from_web is off. Use "
    "'folkmoot backends' on the hub's machine."
)
Table = Annotated[
    dict[str, Any],
    "Its table as the settings file has it, in place of `text`. Only on the hub's own machine: it "
    "can name the hub's files and variables.",
]
Name = Annotated[
    str,
    describe(
        "The name of the server, by which its tools are called. JSON has one already.",
        max_length=64,
    ),
]


async def check_editing(call: Call, operation: str) -> None:
    """Refuse whoever may not change what the hub runs."""
    check_switch(call)
    await check_present(call, operation)


def check_switch(call: Call) -> None:
    """Refuse to change the settings file over the network where that is switched off."""
    on = settings(call).loaded.settings.gateway.edit_from_web
    if call.caller.account is not None and not on:
        raise e.CapabilityDenied(OFF)


def settings(call: Call) -> Reloading:
    """The part that reads and writes the settings file."""
    assert call.services.reloading is not None  # noqa: S101 - see `needs`
    return call.services.reloading


editor = operator.with_(needs=("fleet", "reloading"), limits=OWN_GUESSES, present=check_editing)


class Testing(Struct, frozen=True):
    """How far a test is, and how long it may take from there."""

    step: Literal["connecting", "reading"]
    seconds: float


class TestedServer(Struct, frozen=True, kw_only=True):
    """What came of a test, and what should be known of the description."""

    __test__ = False

    tried: Tried
    notes: list[str]


@editor.acts(
    "folkmoot/server_test",
    post(
        "/v1/server-tests",
        "testServer",
        "Test a server",
        example={"text": "uvx mcp-server-time", "name": "time"},
    ),
    secret=("text", "table"),
    errors=(e.BackendUnknown, e.CommandInvalid),
    progress=Testing,
    audit=AuditSpec("backend.tested", by_service=True),
    commands=("backends test",),
)
async def try_server(
    call: Call,
    *,
    text: Annotated[
        str,
        describe(
            "What describes it: JSON with `mcpServers`, a command line, or a URL. Without it, the "
            "server of that name is tested.",
            max_length=MAX_SERVER_TEXT,
        ),
    ] = "",
    name: Name = "",
    table: Table | None = None,
) -> TestedServer:
    """Connect to a server once, and show what it offers. Nothing is saved. Over the network it
    needs https, and your passkey or a token once more.
    """
    loaded = settings(call).loaded
    if table is None and not text.strip():
        return TestedServer(tried=await test(call, find(loaded, name)), notes=[])
    wanted = server_of(call, text, name, table)
    spec = wanted.checked(folder_of(loaded))
    return TestedServer(tried=await test(call, spec), notes=wanted.notes)


class AddedServer(Struct, frozen=True, kw_only=True):
    """A server that was tested, saved and started."""

    namespace: str
    file: str
    """The settings file it is in."""
    tried: Tried | None
    """What came of the test; null without one."""
    notes: list[str]


@editor.acts(
    "folkmoot/server_add",
    post(
        PATH,
        "addServer",
        "Add a server",
        status=201,
        example={"text": "uvx mcp-server-time", "name": "time"},
    ),
    secret=("text", "table"),
    errors=(e.CommandInvalid,),
    progress=Testing,
    audit=AuditSpec("backend.added", by_service=True),
    commands=("backends add",),
)
async def add_server(
    call: Call,
    *,
    text: Annotated[
        str,
        describe(
            "What describes it: JSON with `mcpServers`, a command line, or a URL.",
            max_length=MAX_SERVER_TEXT,
        ),
    ] = "",
    name: Name = "",
    table: Table | None = None,
    everyone: Annotated[bool, "Let every account use it."] = False,
    per_user: Annotated[bool, "Keep a separate connection for each person."] = False,
    tested: Annotated[bool, "Save it only if it can be reached."] = True,
) -> AddedServer:
    """Test a server, save it in the settings file and start it. Nothing is saved if it cannot be
    reached. Over the network it needs https, and your passkey or a token once more.
    """
    editing, wanted = settings(call), server_of(call, text, name, table)
    loaded = editing.loaded
    spec = wanted.checked(folder_of(loaded), everyone=everyone, per_user=per_user)
    for other in loaded.gateway.backends.values():
        # What is imported by the same name is replaced by a table in the file.
        imported = wanted.name == other.name and not is_in_file(loaded, f"{BACKENDS}.{other.name}")
        if wanted.name in (other.name, other.namespace) and not imported:
            raise e.CommandInvalid(f"A server {wanted.name} already exists. Choose another name.")
    await check_handle(call, spec.namespace)
    change = partial(with_backend, name=wanted.name, table=wanted.table)
    # Before anything is run: what cannot be written need not be tried.
    await edited(editing, change, pretend=True)
    found = await test(call, spec) if tested and spec.enabled else None
    if found is not None and not found.ok:
        raise e.CommandInvalid(f"{found.why.rstrip('.')}. Nothing was saved.")
    await edited(editing, change)
    await leave_line(call.services, call.caller, "backend.added", spec.namespace, program(spec))
    file = str(editing.loaded.file)
    return AddedServer(namespace=spec.namespace, file=file, tried=found, notes=wanted.notes)


class RemovedServer(Struct, frozen=True, kw_only=True):
    """A server that is gone; the accepted versions of its tools are kept."""

    namespace: str
    file: str


@editor.destroys(
    "folkmoot/server_remove",
    delete(PATH + "/{namespace}", "removeServer", "Remove a server"),
    errors=(e.BackendUnknown, e.CommandInvalid),
    audit=AuditSpec("backend.removed", by_service=True),
    commands=("backends remove",),
)
async def remove_server(
    call: Call,
    namespace: Annotated[str, describe("The server, by its namespace or its name.", max_length=64)],
) -> RemovedServer:
    """Remove a server from the settings file. Over the network it needs https, and your passkey or
    a token once more.
    """
    editing = settings(call)
    loaded = editing.loaded
    spec = find(loaded, namespace)
    check_in_file(loaded, spec)
    await edited(editing, partial(without_backend, name=spec.name))
    await leave_line(call.services, call.caller, "backend.removed", spec.namespace)
    return RemovedServer(namespace=spec.namespace, file=str(loaded.file))


class ServerSettings(Struct, frozen=True, kw_only=True):
    """What can be changed of a server while the hub runs."""

    namespace: str
    everyone: bool
    trusted: bool
    enabled: bool


@editor.changes(
    "folkmoot/server_set",
    patch(
        PATH + "/{namespace}", "setServer", "Change a server's settings", example={"everyone": True}
    ),
    errors=(e.BackendUnknown, e.CommandInvalid),
    audit=AuditSpec("backend.set", by_service=True),
    commands=Absent("The console asks for it; in a terminal one edits the settings file."),
)
async def set_server(
    call: Call,
    namespace: Namespace,
    *,
    everyone: Annotated[bool, "Let every account use it."] | None = None,
    trusted: Annotated[bool, "List changed and new tools without review."] | None = None,
    enabled: Annotated[bool, "Whether it is used; if not, it is kept."] | None = None,
) -> ServerSettings:
    """Open a server to everyone, list its new tools without review, or switch it off, in the
    settings file. Over the network it needs https, and your passkey or a token once more.
    """
    editing = settings(call)
    spec = find(editing.loaded, namespace)
    check_in_file(editing.loaded, spec)
    wanted = {"everyone": everyone, "trusted": trusted, "enabled": enabled}
    new = {key: value for key, value in wanted.items() if value is not None}

    def change(text: str) -> str:
        for key, value in new.items():
            text = with_value(text, (BACKENDS, spec.name, key), value)
        return text

    await edited(editing, change)
    told = ", ".join(f"{key} {'on' if value else 'off'}" for key, value in new.items())
    await leave_line(call.services, call.caller, "backend.set", spec.namespace, told)
    return view_of(ServerSettings, find(editing.loaded, spec.name))


class RestartedServer(Struct, frozen=True):
    """A server that is being reached anew."""

    namespace: str


@operator.changes(
    "folkmoot/server_restart",
    post(PATH + "/{namespace}/restart", "restartServer", "Restart a server"),
    errors=(e.BackendUnknown,),
    audit=AuditSpec("backend.restarted", "namespace"),
    commands=Absent("The console and programs ask for it; the hub tries again by itself."),
)
async def restart_server(call: Call, namespace: Namespace) -> RestartedServer:
    """Connect to a server anew: its program is started again, and secrets are read again."""
    await call.services.fleet.restart(namespace)
    return RestartedServer(namespace)


def server_of(call: Call, text: str, name: str, table: dict[str, Any] | None) -> Described:
    """The server that a text or a table describes."""
    if table is None:
        return described(text, name)
    if call.caller.account is not None:
        raise e.CapabilityDenied("A table of settings is taken only on the hub's own machine.")
    return Described(name, table, [])


async def check_handle(call: Call, namespace: str) -> None:
    """Refuse a namespace that is someone's handle; a stopped hub looks when the file is written."""
    from folkmoot.storage import IS_HANDLE, handles_in

    store: Any = call.services.store
    if store is not None and await store.read(lambda tx: handles_in(tx, [namespace])):
        raise e.CommandInvalid(f"{IS_HANDLE.format(namespace)} Nothing was saved.")


async def test(call: Call, spec: BackendSpec) -> Tried:
    """Reach a server once; that it was tried is in the audit log, whatever comes of it."""

    def tell(step: str) -> None:
        if step == "connecting":
            call.progress(Testing("connecting", spec.connect_seconds))
        else:
            call.progress(Testing("reading", spec.call_seconds))

    await leave_line(call.services, call.caller, "backend.tested", spec.namespace, program(spec))
    return await tried(spec, await call.services.fleet.test(spec, tell))


def program(spec: BackendSpec) -> str:
    """What the audit log has of a server: nothing that could be secret."""
    return "url" if spec.url else spec.command[0]


async def edited(
    editing: Reloading, change: Callable[[str], str], *, pretend: bool = False
) -> None:
    """Change the settings file; what is wrong with the change is for the operator to read."""
    try:
        await editing.edit(change, pretend=pretend)
    except (e.SettingsError, e.SettingsUnwritable) as error:
        raise e.CommandInvalid(f"{error.message.rstrip('.')}. Nothing was saved.") from None


def find(loaded: Loaded, name: str) -> BackendSpec:
    """A server of the settings, by its name or its namespace."""
    for spec in loaded.gateway.backends.values():
        if name in (spec.name, spec.namespace):
            return spec
    raise e.BackendUnknown("The settings have no server of that name.")


def check_in_file(loaded: Loaded, spec: BackendSpec) -> None:
    """Refuse to change a server that another file has."""
    if not is_in_file(loaded, f"backends.{spec.name}"):
        where = loaded.gateway_origins[f"backends.{spec.name}"]
        raise e.CommandInvalid(
            f"{spec.namespace} is imported from {where} by gateway.mcp_servers. Change it there."
        )


def folder_of(loaded: Loaded) -> Path:
    """What relative paths in the settings file are relative to."""
    return Path(loaded.place or "config.toml").absolute().parent
