"""A siege from its beginning to its verdict: quiet, attack, rest, recovery."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.siege import people
from tests.siege.attacks import ACCOUNTS, ATTACKS
from tests.siege.figures import (
    MIB,
    Figure,
    Outcome,
    Phase,
    common,
    failures,
    judged,
    operations,
    table,
)
from tests.siege.host import BACKENDS, ROOMS, Account, Host, Sample, helper, hosting
from tests.siege.wire import FAILURES, Line, Refused

WARM_UP_SECONDS: Final = 5.0
# After an attack, before everything must be as it was.
REST_SECONDS: Final = 10.0
RECOVERY_SECONDS: Final = 10.0
SAMPLE_SECONDS: Final = 0.25
# The attack ends early when the hub takes more memory than this.
RESIDENT_BYTES: Final = 3 << 30
# How long the write-ahead log may become.
DISK_LOG: Final = 64 * MIB
# What everyone together may write in a second: a mebibyte for each of the attackers' two rooms.
DISK_RATE: Final = 3 * MIB
VICTIM: Final = "mail0"


class Watch:
    """Samples of a hub, taken while something else happens."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.samples: list[Sample] = []

    def until(self, end: float, people: subprocess.Popen[str]) -> Phase:
        """Take samples until it is that late, as long as everyone lives."""
        begin = time.monotonic()
        while time.monotonic() < end:
            if self._host.child.poll() is not None:
                raise RuntimeError("the hub ended")
            if people.poll() is not None:
                raise RuntimeError("the people ended")
            self.samples.append(self._host.sample())
            if self.samples[-1].resident > RESIDENT_BYTES:
                break
            time.sleep(SAMPLE_SECONDS)
        return Phase(begin, time.monotonic())


def besiege(seconds: float, only: str = "") -> Outcome:
    """Run a whole siege; quiet and attack take so many seconds each."""
    with (
        tempfile.TemporaryDirectory(prefix="folkmoot-siege-") as folder,
        helper("tests.siege.rogue", None) as rogue,
        hosting(Path(folder) / "data", rogue=int(first_line(rogue))) as host,
    ):
        accounts = asyncio.run(prepared(host))
        return under_attack(host, accounts, seconds, only)


async def prepared(host: Host) -> tuple[list[Account], list[Account]]:
    """The accounts of the good and of the attackers."""
    good = await host.register(people.HANDLES, 2)
    bad = await host.register(ACCOUNTS, 3)
    await host.prepare(next(one for one in good if one.handle.startswith("talk")))
    return good, bad


def under_attack(
    host: Host, accounts: tuple[list[Account], list[Account]], seconds: float, only: str
) -> Outcome:
    """Have people work, then attackers too, then people alone again."""
    good, bad = accounts
    tokens = {one.handle: one.token for one in good}
    setup = {"port": host.port, "tokens": tokens, "rooms": ROOMS, "backends": list(BACKENDS)}
    watch, phases = Watch(host), {}
    with helper("tests.siege.people", setup) as working:
        assert first_line(working) == "ready", "the people did not begin"
        watch.until(time.monotonic() + WARM_UP_SECONDS, working)
        phases["quiet"] = watch.until(time.monotonic() + seconds, working)
        with attacking(host, bad, seconds, only) as attackers:
            phases["siege"] = watch.until(time.monotonic() + seconds, working)
            came = ended(attackers)
        watch.until(time.monotonic() + REST_SECONDS, working)
        phases["recovery"] = watch.until(time.monotonic() + RECOVERY_SECONDS, working)
        report = ended(working)
    victim = next(one for one in good if one.handle == VICTIM)
    ready, recovered = asyncio.run(whole(host, victim))
    budget = DISK_LOG + int(DISK_RATE * seconds)
    figures = judged(phases, watch.samples, report, disk_budget=budget)
    figures += [
        Figure("after: not ready", not ready, 0),
        Figure("after: owner locked out", not recovered, 0),
    ]
    return Outcome(figures, described(phases, watch.samples, report, came), watch.samples)


@contextmanager
def attacking(
    host: Host, bad: list[Account], seconds: float, only: str
) -> Iterator[subprocess.Popen[str]]:
    """Attackers who have begun."""
    tokens = {one.handle: one.token for one in bad}
    target = {"tokens": tokens, "victim": VICTIM, "room": ROOMS[0]}
    setup = {"port": host.port, "target": target, "seconds": seconds, "only": only}
    with helper("tests.siege.attackers", setup, nice=5) as child:
        assert first_line(child) == "ready", "the attackers did not begin"
        yield child


def first_line(child: subprocess.Popen[str]) -> str:
    """What a helper prints first, or next."""
    assert child.stdout
    return child.stdout.readline().strip()


def ended(child: subprocess.Popen[str]) -> dict[str, Any]:
    """Tell a helper to end, and read its report."""
    assert child.stdin
    child.stdin.close()
    report: dict[str, Any] = json.loads(first_line(child))
    child.wait()
    return report


async def whole(host: Host, victim: Account) -> tuple[bool, bool]:
    """Whether the hub is ready, and whether the owner of an attacked account can recover it."""
    ready = await host.is_ready()
    given = {"handle": victim.handle, "recovery_code": victim.recovery_code}
    async with Line(host.port, seconds=people.SECONDS) as line:
        try:
            return ready, bool(await line.call("msg_recover", **given))
        except (*FAILURES, Refused):
            return ready, False


def described(
    phases: dict[str, Phase], samples: list[Sample], report: dict[str, Any], came: dict[str, Any]
) -> dict[str, Any]:
    """Everything a run came to beside its figures."""
    told: dict[str, Any] = {
        "checked": report["checked"],
        "attacks": came["outcomes"],
        "carried_out": came["carried_out"],
        "phases": {},
    }
    for name, phase in phases.items():
        notes, some = phase.notes(report["notes"]), phase.samples(samples)
        spent = phase.end - phase.begin
        told["phases"][name] = {
            "seconds": round(spent, 1),
            "hub_cpu": round((some[-1].cpu - some[0].cpu) / spent, 3),
            "operations": operations(notes),
            "failures": common(failures(notes)),
        }
    siege = told["phases"]["siege"]
    siege["attackers_cpu"] = round(came["cpu"] / siege["seconds"], 3)
    return told


def printed(outcome: Outcome) -> str:
    """What a run came to, for people."""
    lines = ["Attacks, and what came back"]
    for attack in ATTACKS:
        if (came := outcome.report["attacks"].get(attack.name)) is not None:
            said = ", ".join(f"{count} × {what}" for what, count in sorted(came.items()))
            lines.append(f"  {attack.name:<30} {attack.how!s:>12}  {said or 'nothing'}")
    lines.append(f"  {outcome.report['carried_out']:.0%} of the planned requests were sent")
    for name, phase in outcome.report["phases"].items():
        used = ", ".join(
            f"{label} {phase[key]:.0%} of a processor"
            for key, label in (("hub_cpu", "hub"), ("attackers_cpu", "attackers"))
            if key in phase
        )
        lines.append(f"\n{name}: {phase['seconds']} s, {used}")
        for what, numbers in phase["operations"].items():
            shown = "  ".join(f"{key} {value:g}" for key, value in numbers.items())
            lines.append(f"  {what:<14} {shown}")
        lines += [f"  failed: {one}" for one in phase["failures"]]
    lines += ["\nFigures", table(outcome.figures)]
    return "\n".join(lines)
