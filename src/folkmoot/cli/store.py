"""`folkmoot store` moves the database to a server, `folkmoot nodes` lists who uses it."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from folkmoot.cli.backup import progress_bar
from folkmoot.cli.commands import Output, Table, group, operator_command, with_json_option
from folkmoot.cli.limits import MAX_DIFFERING
from folkmoot.cli.operator import OperatedHub, check_entry
from folkmoot.cli.options import ConfigOption, DataOption, argument, option, settings_from
from folkmoot.cli.output import moment
from folkmoot.cli.show import Column, counted
from folkmoot.core import errors as e
from folkmoot.core.ports import ListedNode
from folkmoot.datafolder import DataFolder, Paths
from folkmoot.settings.types import database_url

if TYPE_CHECKING:
    from pathlib import Path

    from folkmoot.store.postgres import Transferred

VARIABLE = "FOLKMOOT_STORE_URL"
STANDARD_INPUT = "-"
LONGEST = 4_096
ALONE = "The database is a file in the data folder: one hub uses it."
MUST_BE = (
    "an address such as postgresql://hub@db.example.org/folkmoot; "
    "special characters in a password are written as %40"
)

ToOption = Annotated[
    str | None,
    option(
        "--to",
        "URL",
        "The server and its empty database, or with - read it from the standard input.  "
        f"[default: {VARIABLE}]",
    ),
]


NodeArgument = Annotated[
    str, argument("NODE", "The address or name of another node.  [default: this one]")
]


@with_json_option
def copy(to: ToOption = None, data: DataOption = None, config: ConfigOption = None) -> Output:
    """Copy the database from the data folder to a PostgreSQL server.

    The hub must be stopped. Everything is copied with the same ids in one transaction and compared
    with the original. The file stays as it is. Put the address into the settings as store.url
    afterwards; the master key stays the same.
    """
    given = given_url(to)
    paths = Paths(settings_from(config, data=data).settings.data_folder)
    check_entry(paths)
    try:
        with DataFolder.open(paths.folder):
            if not paths.database_exists():
                raise e.CommandFailed(f"{paths.database}: no database yet, so nothing to copy.")
            done = transferred(paths.database, given)
    except e.DataFolderInUse as error:
        raise e.DataFolderInUse(
            f"{error.message.rstrip('.')}; stop it first. Nothing was copied."
        ) from None
    return Output(
        {"rows": done.rows, "tables": done.tables},
        f"Copied {done.rows:,} rows of {done.tables} tables, and compared them.",
        "Next: set store.url, start the hub, and move the old file away when all is well.",
    )


@partial(operator_command, why="so no hub uses it. Start the hub first.")
def nodes(hub: OperatedHub) -> Output:
    """List the nodes of a hub on PostgreSQL.

    Shows for each node its address, its version, since when it runs, how many rooms it owns, and
    which settings differ from those of the others. A node that crashed is shown as gone for at
    least a day.
    """
    found = listed(hub)
    rows = [
        (each.address or each.name, each.version, moment(int(each.started_at)),
         str(each.rooms), state(each))
        for each in found
    ]  # fmt: skip
    columns = (Column("Node", "bold"), Column("Version", named=True),
               Column("Since", "dim"), Column("Rooms", named=True), Column("State"))  # fmt: skip
    nothing = "No hub uses the database." if hub.is_networked and not hub.runs else ALONE
    return Output({"nodes": found}, Table(columns, rows, nothing))


@partial(operator_command, why="so no hub uses it. Start the hub first.")
def drain(hub: OperatedHub, node: NodeArgument = "") -> Output:
    """Drain a node before it is stopped.

    The node is no longer ready, so that load balancers send new connections elsewhere. After five
    seconds other nodes get its rooms, and its connections to rooms are closed with 1012. The
    command waits for that. A restart ends it.
    """
    if not hub.runs:
        raise e.HubNotRunning("No hub is running on this data folder. Run it where a node runs.")
    asked = hub.drain_node(node=node).node
    left, deadline = found(hub, asked.process), time.monotonic() + 60.0
    while left is not None and (left.rooms or not left.drained) and time.monotonic() < deadline:
        time.sleep(0.5)
        left = found(hub, asked.process)
    name = asked.address or asked.name
    if left is not None and (left.rooms or not left.drained):
        raise e.CommandFailed(
            f"{name} still has {counted(left.rooms, 'room')}. It goes on draining."
        )
    return Output({"node": asked}, f"Drained {name}. Other nodes have its rooms: stop it now.")


def found(hub: OperatedHub, process: str) -> ListedNode | None:
    """A node as it is now; None once it has stopped."""
    return next((each for each in listed(hub) if each.process == process), None)


def listed(hub: OperatedHub) -> list[ListedNode]:
    """The nodes, by the hub that runs here: its environment may name the database, and not ours."""
    if hub.runs:
        return hub.list_nodes().nodes
    from folkmoot.storage import list_nodes

    return list_nodes(hub.loaded.settings)


def state(node: ListedNode) -> str:
    """Whether a node uses the database, and what an operator should know of it."""
    if node.lease_seconds <= 0:
        return "gone"
    told = "drained" if node.drained else "draining" if node.draining else "running"
    if not node.differing:
        return told
    more = ", …" if len(node.differing) > MAX_DIFFERING else ""
    return f"{told}, differs in {', '.join(node.differing[:MAX_DIFFERING])}{more}"


def given_url(to: str | None) -> str:
    """The address, which should not stand on a command line if it has a password."""
    if to == STANDARD_INPUT:
        to = sys.stdin.read(LONGEST).strip()
    url = to or os.environ.get(VARIABLE, "")
    if not url or not database_url(url):
        raise typer.BadParameter(f"--to must be {MUST_BE}")
    return url


def transferred(source: Path, url: str) -> Transferred:
    """Copy, and show how far it is."""
    import asyncio

    from folkmoot.storage import require_driver

    require_driver()
    from folkmoot.store.postgres import copy_to_server

    with progress_bar("Copying", "copied", "rows") as told:
        return asyncio.run(
            copy_to_server(source, url, lambda done, rows: told({"copied": done, "rows": rows}))
        )


app = group({"copy": copy}, "Move the database to a PostgreSQL server.")
