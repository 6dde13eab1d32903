"""A settings file is followed: right ones count at once, wrong ones change nothing."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.relay.upstream.settings_follower import SettingsFollower
from folkmoot.settings import GatewaySpec, load
from tests.harness import reached

ONE = '[backends.one]\nurl = "http://h/"\n'
TWO = '[backends.two]\nurl = "http://h/"\n'


class Applied:
    """What was applied, in order; waits for the next."""

    def __init__(self) -> None:
        self.specs: list[GatewaySpec] = []
        self.failure: Exception | None = None
        self._seen = 0

    async def __call__(self, spec: GatewaySpec) -> None:
        if self.failure is not None:
            raise self.failure
        self.specs.append(spec)

    async def next(self) -> list[str]:
        """The namespaces of what is applied next."""
        await reached(lambda: len(self.specs) > self._seen)
        self._seen = len(self.specs)
        return sorted(self.specs[-1].backends)


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the gateway's log warned of."""
    ours = [each for each in caplog.records if each.name == "folkmoot.gateway"]
    return [each.getMessage() for each in ours if each.levelno >= logging.WARNING]


async def warns(caplog: pytest.LogCaptureFixture, text: str) -> None:
    await reached(lambda: any(text in line for line in warned(caplog)))


def write(path: Path, text: str) -> None:
    """Put a whole new file there, as editors do."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(ONE)
    return path


@asynccontextmanager
async def following(file: Path) -> AsyncIterator[tuple[SettingsFollower, Applied]]:
    applied = Applied()
    made = SettingsFollower(load(environ={"FOLKMOOT_DATA": str(file.parent)}), applied)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(made.watch(0.01))
        yield made, applied
        task.cancel()


async def test_a_changed_file_counts_at_once_and_the_log_says_so(file, caplog):
    with caplog.at_level(logging.INFO):
        async with following(file) as (_, applied):
            write(file, ONE + TWO)
            assert await applied.next() == ["one", "two"]
            write(file, TWO)
            assert await applied.next() == ["two"]
    assert [getattr(record, "removed", "") for record in caplog.records] == ["", "one"]


async def test_a_wrong_file_changes_nothing_and_every_line_of_it_is_told_once(file, caplog):
    async with following(file) as (_, applied):
        write(file, 'port = "x"\n[backends.two]\nurl = 7\n')
        await warns(caplog, "backends.two.url must be")
        write(file, ONE + TWO)
        assert await applied.next() == ["one", "two"]
        assert len(applied.specs) == 1
    first, second = (line.partition(": ")[2] for line in warned(caplog))
    assert first == f'{file}:1: port must be an integer between 0 and 65535, not "x"'
    assert second.startswith(f"{file}:3: backends.two.url must be an http:// or https:// URL")


@pytest.mark.parametrize(
    "more",
    [
        '[grants]\ngina = ["one:*"]\n',
        '[groups]\nops = ["gina"]\n',
        '[asks.all]\nwhat = ["one:*"]\nto = "gina"\n',
    ],
)
async def test_who_may_what_and_who_is_asked_count_at_once(file, more):
    async with following(file) as (made, applied):
        write(file, ONE + more)
        assert await applied.next() == ["one"]
        before = applied.specs[-1]
        write(file, ONE)
        await applied.next()
        assert applied.specs[-1] != before
        assert not (await made.reload()).rights


async def test_a_file_that_is_made_only_now_is_followed_and_one_that_goes_changes_nothing(
    tmp_path, caplog
):
    file = tmp_path / "config.toml"
    async with following(file) as (_, applied):
        write(file, ONE)
        assert await applied.next() == ["one"]
        file.unlink()
        await warns(caplog, "is gone")
        assert len(applied.specs) == 1


async def test_imported_files_are_followed_too_even_while_they_are_wrong(file, caplog):
    servers = file.parent / "mcp.json"
    async with following(file) as (_, applied):
        write(servers, "{")
        write(file, f'gateway.mcp_servers = ["mcp.json"]\n{ONE}')
        await warns(caplog, "mcp.json:1: is not JSON")
        write(servers, '{"mcpServers": {"two": {"command": "x"}}}')
        assert await applied.next() == ["one", "two"]
        write(servers, '{"mcpServers": {"three": {"command": "x"}}}')
        assert await applied.next() == ["one", "three"]


async def test_other_settings_are_said_to_need_a_restart_once(file, caplog):
    async with following(file) as (followed, applied):
        write(file, f"port = 7\n{ONE}")
        assert (await followed.reload()).restart == ("port",)
        assert (await followed.reload()).restart == ("port",)
        assert not applied.specs
    assert warned(caplog) == ["some settings changed and take effect at the next start: port"]


async def test_a_reload_tells_what_changed_and_raises_what_is_wrong(file, caplog):
    applied = Applied()
    made = SettingsFollower(load(file, environ={}), applied)
    assert not (await made.reload()).different
    write(file, f'{ONE}trusted = true\n{TWO}[groups]\nops = ["gina"]\n')
    report = await made.reload()
    assert (report.added, report.removed, report.changed) == (("two",), (), ("one",))
    assert (report.rights, report.backends, report.file) == (True, 2, str(file))
    write(file, "x = 1\n")
    with pytest.raises(e.SettingsError, match="unknown setting 'x'"):
        await made.reload()
    assert sorted(applied.specs[-1].backends) == ["one", "two"]
    assert warned(caplog)[-1] == f"the settings were not changed: {file}:1: unknown setting 'x'"


@pytest.mark.parametrize("failure", [e.CommandFailed("No room."), RuntimeError("odd")])
async def test_what_cannot_be_applied_is_told_and_tried_again_with_the_next_change(
    file, failure, caplog
):
    async with following(file) as (_, applied):
        applied.failure = failure
        write(file, ONE + TWO)
        await warns(caplog, "could not be applied")
        applied.failure = None
        os.utime(file)
        assert await applied.next() == ["one", "two"]


async def test_a_link_to_another_file_is_a_change(file):
    def switch(target: Path, to: Path) -> None:
        new = target.with_suffix(".link")
        new.symlink_to(to)
        new.replace(target)

    other = file.with_name("other.toml")
    other.write_text(TWO)
    async with following(file) as (_, applied):
        switch(file, other)
        assert await applied.next() == ["two"]
