"""The table itself: every row can be reached on each way in, or says why not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from typer.main import get_command

from docs.pages.answers import ANSWERS
from folkmoot.cli.program import app
from folkmoot.operations import OPERATIONS, Absent
from folkmoot.operations.routes import ENDPOINTS
from folkmoot.operations.row import NOTICE

every_row = pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row.name)


def commands(group: Any, before: str = "") -> Iterator[str]:
    """Every command that the program has, with the groups it is in."""
    for name, command in getattr(group, "commands", {}).items():
        yield f"{before}{name}"
        yield from commands(command, f"{before}{name} ")


COMMANDS = frozenset(commands(get_command(app)))
ROUTES = {(served.name, served.method, served.path) for served in ENDPOINTS}


def test_every_name_is_in_the_table_once():
    assert len({row.name for row in OPERATIONS}) == len(OPERATIONS)


@every_row
def test_every_operation_has_a_tool_a_route_and_a_command_or_says_why_not(row):
    for way in (row.tool, row.routes, row.commands):
        assert way
        if isinstance(way, Absent):
            assert way.why.endswith(".")
    if not isinstance(row.commands, Absent):
        assert COMMANDS.issuperset(row.commands)
    routes = () if isinstance(row.routes, Absent) else row.routes
    assert {(row.name, route.method, route.path) for route in routes} == {
        served for served in ROUTES if served[0] == row.name
    }


@every_row
def test_what_an_operation_counts_waits_and_asks_for_are_arguments_of_it(row):
    named = {row.waits, row.asks, row.once, *row.takes.__exactly_one__} - {""}
    assert named <= row.schema["properties"].keys()
    if row.audit is not None and row.audit.about:
        assert row.audit.about in row.schema["properties"]


@every_row
def test_whoever_may_do_it_leaves_a_line_has_a_scope_or_stays_in_the_room(row):
    assert row.audit is not None or row.effect == "reads" or row.who != "operator"
    # Of events each is judged by the operation that tells the same.
    assert bool(row.scope) or row.who == "anyone" or row.name == "folkmoot/events"
    assert row.who != "guest" or row.about == "room" or row.name in {"room/list", "folkmoot/events"}


@every_row
def test_every_operation_answers_in_the_form_it_gives(row):
    """The examples are those of the reference, which a test holds against a real hub."""
    if isinstance(row.tool, Absent) or row.name == "folkmoot/call_tool":
        return
    answer = {name: value for name, value in ANSWERS[row.name].items() if name != NOTICE}
    given = msgspec.json.decode(msgspec.json.encode(answer), type=row.gives)
    assert msgspec.json.decode(msgspec.json.encode(given)) == answer
    members = {field.encode_name for field in msgspec.structs.fields(row.gives)}
    assert members.issuperset(row.others_words)


def test_the_rows_are_loaded_without_the_hub():
    script = (
        "import sys\n"
        "from folkmoot.operations import OPERATIONS\n"
        "assert all(row.schema for row in OPERATIONS)\n"
        "heavy = {'apsw', 'nacl', 'starlette', 'uvicorn', 'folkmoot.store', 'folkmoot.mail.mail',\n"
        "         'folkmoot.accounts.accounts', 'folkmoot.rooms.rooms'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
