"""Operators look after a hub over REST: its backups and its servers' settings."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from folkmoot.operations.limits import MAX_BACKUPS_KEPT
from tests.transports.rest.support import done, house, refused
from tests.transports.rest.test_tapes import operator

BACKUPS = "/v1/backups"


@pytest.fixture
async def hub(tmp_path, clock):
    async with house(tmp_path / "hub", clock) as here:
        here.root = await operator(here)
        yield here


async def test_a_backup_is_made_in_the_data_folder_which_keeps_the_newest(hub, clock):
    before = await hub.root.get(BACKUPS)
    assert (before["last_at"], before["backups"]) == (None, [])
    made = []
    for _ in range(MAX_BACKUPS_KEPT + 2):
        answer = done(await hub.root.ask("POST", BACKUPS, {}), 201)
        assert "not in the backup" in answer["warning"]
        made.append(Path(answer["path"]))
        clock.advance(1)
    shown = await hub.root.get(BACKUPS)
    assert [it["name"] for it in shown["backups"]] == [
        path.name for path in reversed(made[-MAX_BACKUPS_KEPT:])
    ]
    assert shown["last_at"] == int(clock.now()) - 1
    assert not made[0].exists()
    assert stat.S_IMODE(made[-1].stat().st_mode) == 0o600
    assert stat.S_IMODE(made[-1].parent.stat().st_mode) == 0o700
    await hub.hub._audit.drain()
    lines = (await hub.root.get("/v1/audit?action=database.backed_up"))["lines"]
    assert {it["by"] for it in lines} == {"otto"}


async def test_nobody_else_makes_or_sees_a_backup_and_no_operator_names_its_file(hub, tmp_path):
    bob = await hub.person("bob")
    for who, status, code in (
        (bob, 403, "scope_missing"),
        (hub.stranger, 401, "authentication_required"),
    ):
        refused(await who.ask("POST", BACKUPS, {}), status, code)
        refused(await who.ask("GET", BACKUPS), status, code)
    named = {"path": str(tmp_path / "elsewhere.db")}
    refused(await hub.root.ask("POST", BACKUPS, named), 400, "argument_invalid")
    assert (await hub.root.get(BACKUPS))["backups"] == []
