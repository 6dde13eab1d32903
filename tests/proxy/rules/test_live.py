"""Rules while they run: the file changes, and what they know stays."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.core.verdict import CONTINUE, Block, Hold
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.rules import Rules
from tests.harness import reached, run
from tests.proxy.rules.support import Clock, call, envelope

LIMIT = '[[rule]]\nname = "few"\nuse = "rate-limit"\noptions = { per_minute = 1, burst = 2 }\n'
STOP = '[[rule]]\nname = "stop"\nwhen = { tool = "stop" }\naction = "block"\n'
HOLD = '[[rule]]\nname = "hold"\nwhen = { tool = "wait" }\naction = "hold"\n'


def written(path: Path, text: str) -> Path:
    """A file put in the place of the one that was there, so that it is always another one."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
    return path


def stops(rules: Rules, tool: str) -> bool:
    return isinstance(run(Chain(rules.interceptors).judge(envelope(call(tool)))).verdict, Block)


def test_what_has_not_changed_keeps_what_it_counted(tmp_path):
    path = written(tmp_path / "rules.toml", LIMIT)
    rules = Rules.load(path, clock=Clock())
    assert [stops(rules, "x") for _ in range(3)] == [False, False, True]
    written(path, STOP + LIMIT)
    rules.reload()
    assert stops(rules, "stop")
    assert stops(rules, "x")
    written(path, LIMIT.replace("burst = 2", "burst = 3"))
    rules.reload()
    assert not stops(rules, "x")


def test_a_file_that_is_wrong_changes_nothing(tmp_path):
    path = written(tmp_path / "rules.toml", STOP)
    rules = Rules.load(path, clock=Clock())
    written(path, STOP + "[[rule]]\n")
    with pytest.raises(e.RulesInvalid, match="rule 2"):
        rules.reload()
    assert stops(rules, "stop")


async def test_a_message_that_waits_goes_on_under_the_rules_it_came_under(tmp_path):
    path = written(tmp_path / "rules.toml", HOLD)
    rules = Rules.load(path, clock=Clock())

    class Desk:
        async def hold(self, *_: object) -> None:
            written(path, '[[rule]]\nname = "all"\naction = "block"\n')
            rules.reload()

    chain = Chain(rules.interceptors, Desk())
    ruling = await chain.judge(envelope(call("wait")))
    assert isinstance(ruling.verdict, Hold)
    assert (await chain.settle(ruling)).verdict is CONTINUE
    assert isinstance((await chain.judge(envelope(call("x")))).verdict, Block)


async def test_a_watched_file_is_followed_and_each_mistake_told_once(tmp_path, caplog):
    caplog.set_level(logging.INFO, "folkmoot.proxy")

    def told(text: str) -> int:
        return sum(text in record.message for record in caplog.records)

    path = written(tmp_path / "rules.toml", "")
    rules = Rules.load(path, clock=Clock())
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(rules.watch(0.001))
        written(path, STOP)
        await reached(lambda: len(rules.ruleset.rules) == 1)
        written(path, "[[rule")
        await reached(lambda: told("not changed") == 1)
        path.unlink()
        await reached(lambda: told("not changed") == 2)
        written(path, STOP + LIMIT)
        await reached(lambda: len(rules.ruleset.rules) == 2)
        watching.cancel()
    assert told("not changed") == 2
    reasons = [vars(record).get("error", "") for record in caplog.records]
    assert any("is not TOML" in reason for reason in reasons)
