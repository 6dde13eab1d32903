"""Mail that was acknowledged outlives the power, whichever unsynced writes reached the disk."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from folkmoot.accounts import Account
from folkmoot.store import Synchronous, find_faults
from tests.amounts import few, times
from tests.mail.support import SECONDS, PostOffice, check_books, opened, pages
from tests.store.disk import Disk

pytestmark = pytest.mark.sqlite("cuts the power of its disk")

WRITERS = 5
PEOPLE = ("ann", "ben", "cat")


MANY_MORE = [pytest.param(seed, marks=pytest.mark.long) for seed in range(100, 100 + times(20))]


class Outage:
    """Power that fails at a sync, just before it takes effect; noted is what was acknowledged."""

    def __init__(self, folder: Path, at_sync: int, chance: random.Random | None) -> None:
        self.disk = Disk()
        self.before, self.after = folder / "before", folder / "after"
        for each in (self.before, self.after):
            each.mkdir()
        self.dark = asyncio.Event()
        self.acknowledged: dict[str, str] = {}
        self.kept: dict[str, str] = {}
        self._at_sync = at_sync
        self._chance = chance
        self._loop = asyncio.get_running_loop()

    def await_sync(self) -> None:
        """From now on count the syncs; in whichever thread, the one that was chosen is the end."""
        numbers = itertools.count(1)

        def before_sync() -> None:
            if next(numbers) == self._at_sync:
                self.kept = dict(self.acknowledged)
                self.disk.lose_power(self.after, self._chance)
                self._loop.call_soon_threadsafe(self.dark.set)

        self.disk.before_sync = before_sync


async def write(office: PostOffice, outage: Outage, sender: Account, number: int) -> None:
    """Send and reply to the others in turn until it is dark."""
    others = [handle for handle in PEOPLE if handle != sender.handle]
    for count in itertools.count():
        if outage.dark.is_set():
            return
        body = f"{sender.handle} {number} {count} " + "x" * (count * 97 % 3000)
        sent = await office.mail.send(sender, others[count % 2], body=body)
        outage.acknowledged[sent.message_id] = body
        answer = f"again {body}"
        replied = await office.mail.reply(sender, sent.message_id, body=answer)
        outage.acknowledged[replied.message_id] = answer
        if count % 3 == 0:
            await office.read(sender, limit=3)


async def write_until_dark(outage: Outage, synchronous: Synchronous) -> None:
    async with opened(outage.before, vfs=outage.disk.name, synchronous=synchronous) as office:
        people = await office.people(*PEOPLE)
        outage.await_sync()
        async with asyncio.TaskGroup() as tasks:
            for number in range(WRITERS):
                sender = people[number % len(people)]
                tasks.create_task(write(office, outage, sender, number))


async def found_after(outage: Outage) -> Counter[tuple[str, str | None]]:
    """Every copy of a message that anyone has, once the books were looked at."""
    assert find_faults(outage.after / "folkmoot.db") == []
    async with opened(outage.after) as office:
        await check_books(office)
        copies: Counter[tuple[str, str | None]] = Counter()
        for (user_id,) in await office.rows("SELECT id FROM users"):
            account = await office.accounts.account(user_id)
            assert account is not None
            for thread in (await office.mail.threads(account)).threads:
                ask = partial(office.mail.inbox, account, thread_id=thread.id, peek=True)
                async for page in pages(ask):
                    copies.update((message.id, message.body) for message in page.messages)
        return copies


def lose_power(
    folder: Path, at_sync: int, chance: random.Random | None, synchronous: Synchronous = "full"
) -> tuple[dict[str, str], Counter[tuple[str, str | None]]]:
    """What was acknowledged when the power failed, and what is there afterwards."""

    async def run() -> tuple[dict[str, str], Counter[tuple[str, str | None]]]:
        outage = Outage(folder, at_sync, chance)
        async with asyncio.timeout(SECONDS):
            await write_until_dark(outage, synchronous)
            return outage.kept, await found_after(outage)

    return asyncio.run(run())


def check(kept: dict[str, str], found: Counter[tuple[str, str | None]]) -> None:
    assert len(kept) > 20
    assert set(found.values()) == {2}, "one copy for each side"
    assert set(kept.items()) <= found.keys()


@pytest.mark.requirement("durable.answered-is-kept")
def test_every_acknowledged_message_survives_a_loss_of_power(tmp_path):
    check(*lose_power(tmp_path, 50, None))


@pytest.mark.requirement("durable.answered-is-kept")
@pytest.mark.parametrize("seed", [*few(range(4), 2), *MANY_MORE])
def test_nothing_acknowledged_is_lost_and_nothing_half_there_whatever_reached_the_disk(
    tmp_path, seed
):
    chance = random.Random(seed)
    check(*lose_power(tmp_path, chance.randint(40, 140), chance))


def test_without_full_syncs_acknowledged_messages_are_lost_and_what_is_left_is_whole(tmp_path):
    """What the setting costs; and the proof that this disk forgets."""
    # The first sync comes with the first checkpoint, after hundreds of messages.
    kept, found = lose_power(tmp_path, 1, None, "normal")
    assert kept
    assert not set(kept.items()) <= found.keys()
    assert set(found.values()) <= {2}
