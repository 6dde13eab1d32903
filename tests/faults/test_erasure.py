"""What people delete is in no file of the data folder, however the hub ends."""

from __future__ import annotations

import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.harness import reached, run
from tests.interaction.room_client import chat, rest
from tests.process import Process
from tests.siege.wire import Line, registered

# The shortest value that is looked for: anything shorter may be found by chance.
LONG_ENOUGH = 24


def values(database: Path) -> set[bytes]:
    """Every text and blob that some row of the database has."""
    found: set[bytes] = set()
    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as reader:
        tables = [name for (name,) in reader.execute("SELECT name FROM pragma_table_list")]
        for table in tables:
            if not table.startswith("sqlite_"):
                for row in reader.execute(f'SELECT * FROM "{table}"'):
                    found |= {
                        each if isinstance(each, bytes) else str(each).encode() for each in row
                    }
    return {each for each in found if len(each) >= LONG_ENOUGH}


def remains(folder: Path, parts: set[bytes]) -> list[bytes]:
    """What is in the files of the database."""
    raw = b"\n".join(file.read_bytes() for file in sorted(folder.glob("folkmoot.db*")))
    return [part for part in parts if part in raw]


class Town:
    """A hub with people who have written to each other, and what they then delete."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "folkmoot.db"
        # How values begin and end that were in the database and are no more.
        self.gone: set[bytes] = set()
        self.kept: set[bytes] = set()
        self._tokens: dict[str, str] = {}

    async def live(self, port: int) -> None:
        """Write, talk and invite, then delete most of it again."""
        self._tokens = await registered(port, "ann", "ben", "cat")
        ann, ben, cat = (Line(port, token) for token in self._tokens.values())
        for size in (10, 300, 6_000):
            await ann.call("msg_send", to="ben", body=f"{size} " + "from ann to ben " * size)
            await cat.call("msg_send", to="ann", body=f"{size} " + "from cat to ann " * size)
        both = await ben.call("msg_send", to="cat", body="deleted by both " * 9)
        thread = await cat.call("msg_send", to="ben", body="the whole thread " * 40)
        single = await ann.call("msg_send", to="cat", body="this one stays " * 9)
        invite = await ann.call("msg_invite", message="welcome to the town " * 5)
        await self._room(port, "POST", "", {"name": "square"})
        for number in range(20):
            said = chat(f"said in the square {number}")
            await self._room(port, "POST", "/square/messages", said)
        before = values(self.database)
        for side in (ben, cat):
            await side.call("msg_delete_message", message_id=both["message_id"])
        for side in (ben, cat):
            await side.call("msg_delete_thread", thread_id=thread["thread_id"])
        code = invite["invite_url"].rpartition("/")[2]
        guest = Line(port)
        await guest.call("msg_register", handle="dan", invite_code=code)
        await self._room(port, "DELETE", "/square")
        await ben.call("msg_delete_account", confirm="ben")
        for line in (ann, ben, cat, guest):
            line.close()
        after = values(self.database)
        assert single["message_id"].encode() in after
        everything = b"\n".join(after)
        ends = {end for each in before - after for end in (each[:LONG_ENOUGH], each[-LONG_ENOUGH:])}
        self.gone = {end for end in ends if end not in everything}
        self.kept = {each[:LONG_ENOUGH] for each in before & after}
        assert len(self.gone) > 20

    async def _room(self, port: int, method: str, path: str, body: Any = None) -> None:
        """Do something with a room of ben's."""
        answer = await rest(port, self._tokens["ben"], method, path, body)
        assert answer.status in {200, 201, 204}, (path, answer)


@pytest.mark.requirement("delete.erases", "store.erasure")
def test_what_was_deleted_is_in_no_file_after_the_log_was_emptied_nor_after_a_clean_stop(tmp_path):
    town = Town(tmp_path / "data")
    with Process(
        town.folder, FOLKMOOT_RATE_LIMITS="off", FOLKMOOT_STORE_EMPTY_LOG_SECONDS="1"
    ) as hub:
        run(town.live(hub.port))

        run(reached(lambda: not (town.folder / "folkmoot.db-wal").stat().st_size))
        assert remains(town.folder, town.gone) == []
        assert len(remains(town.folder, town.kept)) == len(town.kept)
        hub.stop()
    assert remains(town.folder, town.gone) == []


@pytest.mark.requirement("delete.erases", "store.erasure")
def test_what_was_deleted_is_in_no_file_after_a_kill_and_another_start(tmp_path):
    town = Town(tmp_path / "data")
    with Process(town.folder, FOLKMOOT_RATE_LIMITS="off") as hub:
        run(town.live(hub.port))
        hub.signal(signal.SIGKILL)
        hub.child.wait()
    assert remains(town.folder, town.gone)
    with Process(town.folder, FOLKMOOT_RATE_LIMITS="off"):
        assert remains(town.folder, town.gone) == []
        assert len(remains(town.folder, town.kept)) == len(town.kept)
