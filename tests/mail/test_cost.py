"""What reading and sending cost: index reads alone, and as many steps with many messages as few.

Steps are SQLite's own count of the instructions it ran, so the test does not depend on the machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import pytest

from benchmarks.steps import metered
from folkmoot.accounts import Account
from tests.mail.support import NOON, PostOffice, forgetful, opened, payload

pytestmark = pytest.mark.sqlite("counts the steps of its machine")

FEW, MANY = 1_000, 20_000
PEERS = 20
# Trees grow by a level now and then, which some instructions notice.
SAME = 1.05


def new_folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


@asynccontextmanager
async def busy_office(folder: Path) -> AsyncIterator[tuple[PostOffice, list[Account]]]:
    """An office where `reader` has a thread with each of many peers."""
    async with opened(folder) as office:
        people = await office.people("reader", *(f"peer_{n}" for n in range(PEERS)))
        for peer in people[1:]:
            await office.mail.send(peer, "reader", body="hello", priority="urgent")
        yield office, people


FLOOD = (
    """CREATE TEMP TABLE numbers AS WITH RECURSIVE n (n) AS
    (SELECT {peers} + 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count}) SELECT n FROM n""",
    """INSERT INTO messages SELECT n, 'message-' || n, thread_id, from_id, to_id, NULL, 'normal',
    mode, ciphertext, nonce, sender_key, recipient_key, {noon} + n, copies_left, kept
    FROM numbers CROSS JOIN messages WHERE seq = 1 + n % {peers}""",
    """INSERT INTO copies SELECT to_id, seq, created_at, thread_id, 1, 1, 0
    FROM numbers CROSS JOIN messages WHERE seq = n""",
    """INSERT INTO copies SELECT from_id, seq, created_at, thread_id, 0, 0, 0
    FROM numbers CROSS JOIN messages WHERE seq = n""",
    """UPDATE members SET (last_seq, unread) = (SELECT MAX(seq), SUM(c.unread) FROM copies c
    WHERE c.user_id = members.user_id AND c.thread_id = members.thread_id)""",
    "UPDATE counters SET value = {count} WHERE name = 'message_seq'",
)


async def flood(office: PostOffice, count: int) -> None:
    """Store so many messages to the reader: copies of the first ones, a second apart."""
    for sql in FLOOD:
        await office.change(sql.format(peers=PEERS, count=count, noon=NOON))
    office.clock.seconds = NOON + count


Action = Callable[[], Awaitable[object]]


async def actions_of(office: PostOffice, people: list[Account], count: int) -> dict[str, Action]:
    mail, reader, peer = office.mail, people[0], people[1]
    stored = forgetful(office)
    threads = (await mail.threads(reader)).threads
    thread = next(one for one in threads if one.other_handle == peer.handle)
    middle = (await mail.inbox(reader, limit=100)).next_cursor
    deep = (await mail.inbox(reader, limit=1, before=NOON + count // 2)).next_cursor

    async def deliver() -> None:
        office.clock.seconds += 1
        await mail.send(peer, "reader", body="hello")
        page = await mail.inbox(reader, limit=100)
        await mail.mark_delivered(reader, page.seqs)

    return {
        "inbox": lambda: mail.inbox(reader),
        "inbox by cursor": lambda: mail.inbox(reader, cursor=middle),
        "inbox deep down": lambda: mail.inbox(reader, cursor=deep),
        "threads": lambda: stored.threads(reader, limit=PEERS),
        "digest": lambda: mail.digest(reader),
        "thread": lambda: mail.thread(reader, thread.id),
        "thread by inbox": lambda: mail.inbox(reader, thread_id=thread.id),
        "wait with news": lambda: mail.inbox(reader, wait=1),
        "send": lambda: mail.send(peer, "reader", body="hello"),
        "send e2e": lambda: mail.send(peer, "reader", encrypted_payload=payload()),
        "reply": lambda: mail.reply(peer, f"message-{PEERS * 2}", body="hello"),
        "star": lambda: mail.set_state(reader, thread.id, "starred"),
        "deliver": deliver,
        "send and read": lambda: send_and_read(office, peer, reader, thread.id),
    }


async def send_and_read(office: PostOffice, peer: Account, reader: Account, thread: str) -> None:
    """Mark a thread read that is read but for its newest message, and delete that."""
    await office.mail.mark_read(reader, thread)
    sent = await office.mail.send(peer, "reader", body="hello")
    await office.mail.mark_read(reader, thread)
    await office.mail.delete_message(reader, sent.message_id)


async def steps_with(folder: Path, count: int) -> dict[str, int]:
    with metered() as meter:
        async with busy_office(folder) as (office, people):
            await flood(office, count)
            actions = await actions_of(office, people, count)
            return {name: await meter.measure(action) for name, action in actions.items()}


def test_no_action_takes_more_steps_with_many_messages_than_with_few(tmp_path):
    few = asyncio.run(steps_with(new_folder(tmp_path, "few"), FEW))
    many = asyncio.run(steps_with(new_folder(tmp_path, "many"), MANY))
    assert all(steps > 20 for steps in few.values())
    grown = {name: (few[name], many[name]) for name in few if many[name] > few[name] * SAME}
    assert grown == {}


def test_younger_messages_are_passed_over_in_an_index_and_not_read(tmp_path):
    async def steps(folder: Path, count: int) -> int:
        with metered() as meter:
            async with busy_office(folder) as (office, people):
                await flood(office, count)
                return await meter.measure(
                    lambda: office.mail.inbox(people[0], before=NOON + FEW // 2, limit=1)
                )

    few = asyncio.run(steps(new_folder(tmp_path, "few"), FEW))
    assert asyncio.run(steps(new_folder(tmp_path, "many"), MANY)) - few < (MANY - FEW) * 8


async def test_a_digest_takes_no_more_steps_when_more_threads_are_read(tmp_path):
    with metered() as meter:
        async with busy_office(tmp_path) as (office, people):
            reader, steps = people[0], []
            await office.read(reader)
            await office.write_some(people[1], reader, 1)
            steps.append(await meter.measure(lambda: office.mail.digest(reader)))
            for peer in await office.people(*(f"more_{n}" for n in range(PEERS * 2))):
                await office.write_some(peer, reader, 1)
            await office.read(reader, limit=100)
            await office.write_some(people[1], reader, 1)
            steps.append(await meter.measure(lambda: office.mail.digest(reader)))
            few, many = steps
    assert many <= few * SAME


async def test_every_statement_of_mail_finds_its_rows_by_an_index(tmp_path):
    with metered() as meter:
        async with busy_office(tmp_path) as (office, people):
            await flood(office, FEW)
            actions = await actions_of(office, people, FEW)
            meter.statements.clear()
            for action in actions.values():
                await action()
            mail, reader, peer = office.mail, people[0], people[1]
            await mail.inbox(reader, before=NOON + 70)
            await mail.threads(reader, state="starred")
            await mail.threads(reader, limit=1)
            thread = (await mail.threads(reader)).threads[0].id
            await mail.inbox(reader, thread_id=thread, wait=1)
            await mail.delete_message(reader, f"message-{PEERS + 1}")
            await mail.delete_thread(reader, thread)
            await mail.expire(NOON + PEERS + 2)
            await mail.delete_account(peer)
            statements = meter.statements
    connection = apsw.Connection(str(tmp_path / "folkmoot.db"), flags=apsw.SQLITE_OPEN_READONLY)
    seen = set()
    for sql, scanned in statements.items():
        verb = sql.split(None, 1)[0]
        if verb in {"SELECT", "INSERT", "UPDATE", "DELETE"} and not takes_the_ends(sql):
            blanks = (None,) * sql.count("?")
            plan = [row[-1] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", blanks)]
            whole = {step for step in plan if step.startswith("SCAN")}
            assert whole <= {"SCAN CONSTANT ROW", "SCAN 2-ROW VALUES CLAUSE"}, sql
            assert not scanned, sql
            seen.add(verb)
    connection.close()
    assert seen == {"SELECT", "INSERT", "UPDATE", "DELETE"}


def takes_the_ends(sql: str) -> bool:
    """Whether a statement takes the first or last messages in the order in which they lie."""
    return "FROM messages ORDER BY seq" in sql and "LIMIT" in sql
