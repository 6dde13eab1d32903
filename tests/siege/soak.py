"""A soak: people, sessions that are opened and left, and an edge under load, for as long as wished.

What a hub takes of memory must come to a plateau: the slope of the last third of the run is judged.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.faults.test_soak import RIGHT, WRONG, Load
from tests.siege import people
from tests.siege.figures import MIB, Figure, Outcome, common, failures, kept, operations
from tests.siege.host import BACKENDS, ROOMS, Host, Sample, helper, hosting
from tests.siege.siege import ended, first_line
from tests.siege.wire import FAILURES, Line, call, initialize

# MiB a minute that memory may still grow in the last third.
MAX_SLOPE: Final = 0.2
SAMPLE_SECONDS: Final = 5.0
# Between two sessions that are opened and never closed.
SESSION_SECONDS: Final = 3.0
# Between two requests of one client that tries the edge.
PAUSE_SECONDS: Final = 0.2
# After which a hub closes a session that nobody uses, unless it is set otherwise.
IDLE_SECONDS: Final = 1800


def slope(samples: Sequence[Sample]) -> float:
    """How memory grows in the last third: MiB a minute, by least squares."""
    last = samples[-max(2, len(samples) // 3) :]
    times = [sample.at / 60 for sample in last]
    sizes = [sample.resident / MIB for sample in last]
    middle, mean = sum(times) / len(times), sum(sizes) / len(sizes)
    spread = sum((time - middle) ** 2 for time in times)
    return sum((t - middle) * (size - mean) for t, size in zip(times, sizes, strict=True)) / spread


def soak(minutes: float) -> Outcome:
    """Load a hub for so long.

    Sessions that nobody uses are closed after half an hour by default, and in a run that is shorter
    than an hour after a third of it, so that the number of them comes to a plateau in any run.
    """
    idle = int(min(IDLE_SECONDS, max(1, minutes * 60 / 3)))
    with (
        tempfile.TemporaryDirectory(prefix="folkmoot-soak-") as folder,
        hosting(Path(folder) / "data", FOLKMOOT_MCP_SESSION_IDLE_SECONDS=str(idle)) as host,
    ):
        tokens = asyncio.run(prepared(host))
        setup = {"port": host.port, "tokens": tokens, "rooms": ROOMS, "backends": list(BACKENDS)}
        with helper("tests.siege.people", setup) as working:
            assert first_line(working) == "ready", "the people did not begin"
            samples = asyncio.run(loaded(host, tokens, minutes * 60))
            report = ended(working)
    notes, checked = report["notes"], report["checked"]
    figures = [
        Figure("memory growth at the end", slope(samples), MAX_SLOPE, "MiB a minute"),
        Figure("refused", len(failures(notes)), 0),
        *kept(checked),
    ]
    told = {
        "minutes": minutes,
        "session_idle_seconds": idle,
        "checked": checked,
        "operations": operations(notes),
        "failures": common(failures(notes)),
    }
    return Outcome(figures, told, samples)


async def prepared(host: Host) -> dict[str, str]:
    """The tokens of the people."""
    accounts = await host.register(people.HANDLES, 2)
    await host.prepare(next(one for one in accounts if one.handle.startswith("talk")))
    return {one.handle: one.token for one in accounts}


async def loaded(host: Host, tokens: dict[str, str], seconds: float) -> list[Sample]:
    """Samples of a hub that is under load meanwhile."""
    load = Load(host, seconds, PAUSE_SECONDS)
    # A hub with a public address shows metrics and details to its operator alone.
    right = [asked for asked in RIGHT if asked.path in ("/", "/health", "/health/ready")]
    until = time.monotonic() + seconds
    samples: list[Sample] = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(load.keeper(right))
        tasks.create_task(load.comer(right))
        tasks.create_task(load.comer(WRONG))
        tasks.create_task(load.vanisher())
        leaving = tasks.create_task(leave_sessions(host, list(tokens.values())))
        while time.monotonic() < until:
            samples.append(host.sample())
            await asyncio.sleep(SAMPLE_SECONDS)
        leaving.cancel()
    return samples


async def leave_sessions(host: Host, tokens: list[str]) -> None:
    """Open a session of the handshake era now and again, use it once and leave it open."""
    for number in itertools.count():
        token = tokens[number % len(tokens)] if number % 2 else ""
        with suppress(*FAILURES):
            async with Line(host.port, source=f"127.4.0.{1 + number % 200}") as line:
                answer = await line.ask(initialize(token))
                session = answer.headers.get("mcp-session-id", "")
                await line.ask(call("msg_digest", {}, token=token, session=session))
        await asyncio.sleep(SESSION_SECONDS)


def printed(soaked: Outcome) -> str:
    """What a soak came to, for people: memory at twelve moments, and the figures."""
    first = soaked.samples[0].at
    lines = [" minute   memory     disk"]
    for sample in soaked.samples[:: max(1, len(soaked.samples) // 12)]:
        minute = (sample.at - first) / 60
        lines.append(f"{minute:7.1f} {sample.resident / MIB:8.1f} {sample.disk / MIB:8.1f} MiB")
    lines += [
        f"{figure.name:<26} {figure.value:8.2f}, at most {figure.bound:g} {figure.unit}"
        f" {'kept' if figure.is_kept else 'MISSED'}"
        for figure in soaked.figures
    ]
    return "\n".join([*lines, *soaked.report["failures"]])
