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
from folkmoot.operations.limits import MAX_SERVER_TEXT
from folkmoot.operations.operator.pasted import described
from folkmoot.operations.operator.presence import (
    ERRORS,
    PRESENT,
    SECRET,
    Confirmed,
    check_present,
)
from folkmoot.operations.rate_limits import OWN_GUESSES
from folkmoot.operations.records import leave_line
from folkmoot.operations.row import (
    Absent,
    Arguments,
    AuditSpec,
    Route,
    describe,
    operated,
    view_of,
)
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

OFF: Final = (
    "Servers and groups cannot be changed over the network: gateway.edit_from_web is off. Use "
    "'folkmoot backends' on the hub's machine."
)
Name = Annotated[
    str,
    describe(
        "The name of the server, by which its tools are called. JSON has one already.",
        max_length=64,
    ),
]


class TestServer(Confirmed, frozen=True, kw_only=True):
    """The description of a server to test, or the name of a configured one."""

    __test__ = False

    text: Annotated[
        str,
        describe(
            "What describes it: JSON with `mcpServers`, a command line, or a URL. Without it, the "
            "server of that name is tested.",
            max_length=MAX_SERVER_TEXT,
        ),
    ] = ""
    name: Name = ""


class AddServer(Confirmed, frozen=True, kw_only=True):
    """The description of a server, and who may use it."""

    text: Annotated[
        str,
        describe(
            "What describes it: JSON with `mcpServers`, a command line, or a URL.",
            min_length=1,
            max_length=MAX_SERVER_TEXT,
        ),
    ]
    name: Name = ""
    everyone: Annotated[bool, describe("Let every account use it.")] = False
    per_user: Annotated[bool, describe("Keep a separate connection for each person.")] = False


class RemoveServer(Confirmed, frozen=True, kw_only=True):
    """Which server."""

    namespace: Annotated[str, describe("The server, by its namespace or its name.", max_length=64)]


class SetServer(Confirmed, frozen=True, kw_only=True):
    """Which server, and what is to be different; what is left out stays."""

    namespace: Annotated[str, describe("The server, by its namespace.", max_length=64)]
    everyone: Annotated[bool, describe("Let every account use it.")] | None = None
    trusted: Annotated[bool, describe("List changed and new tools without review.")] | None = None
    enabled: Annotated[bool, describe("Whether it is used; if not, it is kept.")] | None = None


class ServerSettings(Struct, frozen=True, kw_only=True):
    """What can be changed of a server while the hub runs."""

    namespace: str
    everyone: bool
    trusted: bool
    enabled: bool


class RestartServer(Arguments, frozen=True, kw_only=True):
    """Which server."""

    namespace: Annotated[str, describe("The server, by its namespace.", max_length=64)]


class Testing(Struct, frozen=True):
    """How far a test is, and how long it may take from there."""

    step: Literal["connecting", "reading"]
    seconds: float


class TestedServer(Struct, frozen=True, kw_only=True):
    """What came of a test, and what should be known of the description."""

    __test__ = False

    tried: Tried
    notes: list[str]


class AddedServer(Struct, frozen=True, kw_only=True):
    """A server that was tested, saved and started."""

    namespace: str
    file: str
    """The settings file it is in."""
    tried: Tried
    notes: list[str]


class RemovedServer(Struct, frozen=True, kw_only=True):
    """A server that is gone; the accepted versions of its tools are kept."""

    namespace: str
    file: str


class RestartedServer(Struct, frozen=True):
    """A server that is being reached anew."""

    namespace: str


async def test_server(call: Call[TestServer]) -> TestedServer:
    """Reach a server once, and show what it offers; nothing is saved."""
    await check_editing(call, "folkmoot/server_test")
    given, loaded = call.arguments, settings(call).loaded
    if not given.text.strip():
        return TestedServer(tried=await test(call, find(loaded, given.name)), notes=[])
    wanted = described(given.text, given.name)
    spec = wanted.checked(folder_of(loaded))
    return TestedServer(tried=await test(call, spec), notes=wanted.notes)


async def add_server(call: Call[AddServer]) -> AddedServer:
    """Test a server, save it and start it."""
    await check_editing(call, "folkmoot/server_add")
    given, editing = call.arguments, settings(call)
    wanted = described(given.text, given.name)
    loaded = editing.loaded
    spec = wanted.checked(folder_of(loaded), everyone=given.everyone, per_user=given.per_user)
    for other in loaded.gateway.backends.values():
        if wanted.name in (other.name, other.namespace):
            raise e.CommandInvalid(f"A server {wanted.name} already exists. Choose another name.")
    change = partial(with_backend, name=wanted.name, table=wanted.table)
    # Before anything is run: what cannot be written need not be tried.
    await edited(editing, change, pretend=True)
    found = await test(call, spec)
    if not found.ok:
        raise e.CommandInvalid(f"{found.why.rstrip('.')}. Nothing was saved.")
    await edited(editing, change)
    await leave_line(call.services, call.caller, "backend.added", spec.namespace, found.target)
    file = str(editing.loaded.file)
    return AddedServer(namespace=spec.namespace, file=file, tried=found, notes=wanted.notes)


async def remove_server(call: Call[RemoveServer]) -> RemovedServer:
    """Take a server out of the settings file; what it had open ends."""
    await check_editing(call, "folkmoot/server_remove")
    editing = settings(call)
    loaded = editing.loaded
    spec = find(loaded, call.arguments.namespace)
    check_in_file(loaded, spec)
    await edited(editing, partial(without_backend, name=spec.name))
    await leave_line(call.services, call.caller, "backend.removed", spec.namespace)
    return RemovedServer(namespace=spec.namespace, file=str(loaded.file))


async def set_server(call: Call[SetServer]) -> ServerSettings:
    """Open a server to everyone, trust it, switch it off, or none of these any more."""
    await check_editing(call, "folkmoot/server_set")
    given, editing = call.arguments, settings(call)
    spec = find(editing.loaded, given.namespace)
    check_in_file(editing.loaded, spec)
    wanted = {"everyone": given.everyone, "trusted": given.trusted, "enabled": given.enabled}
    new = {key: value for key, value in wanted.items() if value is not None}

    def change(text: str) -> str:
        for key, value in new.items():
            text = with_value(text, (BACKENDS, spec.name, key), value)
        return text

    await edited(editing, change)
    told = ", ".join(f"{key} {'on' if value else 'off'}" for key, value in new.items())
    await leave_line(call.services, call.caller, "backend.set", spec.namespace, told)
    spec = find(editing.loaded, spec.name)
    return view_of(ServerSettings, spec)


async def restart_server(call: Call[RestartServer]) -> RestartedServer:
    """Reach a server anew."""
    await call.services.fleet.restart(call.arguments.namespace)
    return RestartedServer(call.arguments.namespace)


async def check_editing(call: Call[Any], operation: str) -> None:
    """Refuse whoever may not change what the hub runs."""
    check_switch(call)
    await check_present(call, operation)


def check_switch(call: Call[Any]) -> None:
    """Refuse to change the settings file over the network where that is switched off."""
    on = settings(call).loaded.settings.gateway.edit_from_web
    if call.caller.account is not None and not on:
        raise e.CapabilityDenied(OFF)


async def test(call: Call[Any], spec: BackendSpec) -> Tried:
    """Reach a server once; that it was tried is in the audit log, whatever comes of it."""

    def tell(step: str) -> None:
        if step == "connecting":
            call.progress(Testing("connecting", spec.connect_seconds))
        else:
            call.progress(Testing("reading", spec.call_seconds))

    await leave_line(
        call.services,
        call.caller,
        "backend.tested",
        spec.namespace,
        "url" if spec.url else spec.command[0],
    )
    return await tried(spec, await call.services.fleet.test(spec, tell))


async def edited(
    editing: Reloading, change: Callable[[str], str], *, pretend: bool = False
) -> None:
    """Change the settings file; what is wrong with the change is for the operator to read."""
    try:
        await editing.edit(change, pretend=pretend)
    except (e.SettingsError, e.SettingsUnwritable) as error:
        raise e.CommandInvalid(f"{error.message.rstrip('.')}. Nothing was saved.") from None


def settings(call: Call[Any]) -> Reloading:
    """The part that reads and writes the settings file."""
    assert call.services.reloading is not None  # noqa: S101 - see `needs`
    return call.services.reloading


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


SERVER_EDITS = (
    operated(
        name="folkmoot/server_test",
        description="Connect to a server once, and show what it offers. Nothing is saved. Over the "
        "network it needs https, and your passkey or a token once more.",
        handler=test_server,
        secret=("text", *SECRET),
        effect="acts",
        limits=OWN_GUESSES,
        errors=(e.BackendUnknown, e.CommandInvalid, *ERRORS),
        progress=Testing,
        needs=("fleet", "reloading"),
        audit=AuditSpec("backend.tested", by_service=True),
        routes=(
            Route(
                "POST",
                "/v1/server-tests",
                "testServer",
                "Test a server",
                headers=PRESENT,
                example={"text": "uvx mcp-server-time", "name": "time"},
            ),
        ),
        commands=("backends test",),
    ),
    operated(
        name="folkmoot/server_add",
        description="Test a server, save it in the settings file and start it. Nothing is saved if "
        "it cannot be reached. Over the network it needs https, and your passkey or a token once "
        "more.",
        handler=add_server,
        secret=("text", *SECRET),
        effect="acts",
        limits=OWN_GUESSES,
        errors=(e.CommandInvalid, *ERRORS),
        progress=Testing,
        needs=("fleet", "reloading"),
        audit=AuditSpec("backend.added", by_service=True),
        routes=(
            Route(
                "POST",
                "/v1/servers",
                "addServer",
                "Add a server",
                status=201,
                headers=PRESENT,
                example={"text": "uvx mcp-server-time", "name": "time"},
            ),
        ),
        commands=("backends add",),
    ),
    operated(
        name="folkmoot/server_remove",
        description="Remove a server from the settings file. Over the network it needs https, and "
        "your passkey or a token once more.",
        handler=remove_server,
        secret=SECRET,
        limits=OWN_GUESSES,
        errors=(e.BackendUnknown, e.CommandInvalid, *ERRORS),
        needs=("fleet", "reloading"),
        audit=AuditSpec("backend.removed", by_service=True),
        routes=(
            Route(
                "DELETE",
                "/v1/servers/{namespace}",
                "removeServer",
                "Remove a server",
                headers=PRESENT,
            ),
        ),
        commands=("backends remove",),
    ),
    operated(
        name="folkmoot/server_set",
        description="Open a server to everyone, list its new tools without review, or switch it "
        "off, in the settings file. Over the network it needs https, and your passkey or a token "
        "once more.",
        handler=set_server,
        secret=SECRET,
        limits=OWN_GUESSES,
        errors=(e.BackendUnknown, e.CommandInvalid, *ERRORS),
        needs=("fleet", "reloading"),
        audit=AuditSpec("backend.set", by_service=True),
        routes=(
            Route(
                "PATCH",
                "/v1/servers/{namespace}",
                "setServer",
                "Change a server's settings",
                headers=PRESENT,
                example={"everyone": True},
            ),
        ),
        commands=Absent("The console asks for it; in a terminal one edits the settings file."),
    ),
    operated(
        name="folkmoot/server_restart",
        description="Connect to a server anew: its program is started again, and secrets are read "
        "again.",
        handler=restart_server,
        errors=(e.BackendUnknown,),
        needs=("fleet",),
        audit=AuditSpec("backend.restarted", "namespace"),
        routes=(
            Route("POST", "/v1/servers/{namespace}/restart", "restartServer", "Restart a server"),
        ),
        commands=Absent("The console and programs ask for it; the hub tries again by itself."),
    ),
)
