"""`folkmoot rooms`: every room of a hub, for whoever runs it."""

from __future__ import annotations

from typing import Any

from folkmoot.cli.operator import Operated
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption
from folkmoot.cli.output import size
from folkmoot.cli.show import Column, at, tell_table, word
from folkmoot.cli.text import moment, say_data


def rooms(
    data: DataOption = None, config: ConfigOption = None, *, as_json: JsonOption = False
) -> None:
    """List every room of the hub, including private ones.

    For the operator, on the hub's own machine, with or without a running hub. To use rooms, see
    'folkmoot room'.
    """
    hub = Operated(config, data)
    hub.require_database()
    found: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        page = hub.ask("folkmoot/rooms", {"after": after or None})
        found += page["rooms"]
        after = page["next"]
    if as_json:
        say_data({"rooms": found})
        return
    rows = [
        (word(it["name"]), at(it["owner"]) if it["owner"] else "-", access(it), str(it["members"]),
         str(it["present"]), f"{it['messages']:,}", size(it["bytes"]), last(it))
        for it in found
    ]  # fmt: skip
    columns = (Column("Room", "bold"), Column("Owner"), Column("Access"),
               Column("Members", named=True), Column("Here", named=True),
               Column("Messages", named=True), Column("Size"),
               Column("Last", "dim"))  # fmt: skip
    tell_table(columns, rows, "There are no rooms yet.")


def access(row: dict[str, Any]) -> str:
    """Who may come in, and whether it is kept."""
    return str(row["access"]) if row["durable"] else f"{row['access']}, in memory"


def last(row: dict[str, Any]) -> str:
    """When the last message came."""
    return "-" if row["last_at"] is None else moment(row["last_at"])
