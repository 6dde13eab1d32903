"""What a run came to: each figure with its bound, as a table for people and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.siege.host import Sample

# Mebibytes: what the limits of connections, bodies and sessions let strangers take.
MEMORY_GROWTH: Final = 64.0
# Times that a person hardly notices, while strangers open hundreds of connections a second.
BOUNDS: Final = (("median", 0.5, 0.02), ("p99", 0.99, 0.2), ("longest", 1, 1.0))
# How much slower the hub may still be when the attack is over.
CALM_RATIO: Final = 3.0
MIB: Final = 1 << 20
# When something began, what it was, how many seconds it took, and how it failed if it did.
Note = Sequence[Any]


class Figure(NamedTuple):
    """One number of a run, and the most it may be."""

    name: str
    value: float
    bound: float
    unit: str = ""
    # The same number while nobody attacked.
    quiet: float | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the bound is kept."""
        return self.value <= self.bound


class Outcome(NamedTuple):
    """What a run came to."""

    figures: list[Figure]
    report: dict[str, Any]
    samples: list[Sample]

    @property
    def is_kept(self) -> bool:
        """Whether every bound is kept."""
        return all(figure.is_kept for figure in self.figures)

    def write(self, path: Path) -> None:
        """Keep everything as JSON."""
        figures = [{**figure._asdict(), "kept": figure.is_kept} for figure in self.figures]
        samples = [sample._asdict() for sample in self.samples]
        told = {"kept": self.is_kept, "figures": figures, **self.report, "samples": samples}
        path.write_text(json.dumps(told, indent=1) + "\n")


class Phase(NamedTuple):
    """A part of a run, by the monotonic clock."""

    begin: float
    end: float

    def notes(self, notes: Iterable[Note]) -> list[Note]:
        """What was done in it."""
        return [note for note in notes if self.begin <= note[0] < self.end]

    def samples(self, samples: Iterable[Sample]) -> list[Sample]:
        """What the hub took in it."""
        return [sample for sample in samples if self.begin <= sample.at < self.end]


def quantile(notes: Iterable[Note], share: float) -> float:
    """How long this share of them took at most; something that failed took as long as it took."""
    times = sorted(note[2] for note in notes)
    return times[min(len(times) - 1, int(len(times) * share))] if times else float("inf")


def failures(notes: Iterable[Note]) -> list[str]:
    """How they failed."""
    return [f"{note[1]}: {note[3]}" for note in notes if note[3]]


def latencies(name: str, quiet: list[Note], busy: list[Note]) -> list[Figure]:
    """The median, the p99, and the longest of all."""
    figures = []
    for what, share, seconds in BOUNDS:
        before, now = (quantile(notes, share) * 1000 for notes in (quiet, busy))
        figures.append(Figure(f"{name} {what}", now, seconds * 1000, "ms", before))
    return figures


def recovered(name: str, quiet: list[Note], late: list[Note]) -> Figure:
    """The p99 when the attack is over, against that before it."""
    calm, p99 = quantile(quiet, 0.99) * 1000, quantile(late, 0.99) * 1000
    return Figure(f"after: {name} p99", p99, CALM_RATIO * calm, "ms", calm)


def judged(
    phases: Mapping[str, Phase],
    samples: Sequence[Sample],
    report: Mapping[str, Any],
    *,
    disk_budget: int,
) -> list[Figure]:
    """The figures of a siege: quiet, siege, and recovery after a rest."""
    quiet, siege, after = (phases[name] for name in ("quiet", "siege", "recovery"))
    notes = report["notes"]
    calm, busy, late = (phase.notes(notes) for phase in (quiet, siege, after))
    before, during, end = (phase.samples(samples) for phase in (quiet, siege, after))
    memory, peak, left = (max(s.resident for s in part) / MIB for part in (before, during, end))
    grown = (max(s.disk for s in during) - max(s.disk for s in before)) / MIB
    people = [[note for note in part if note[1] != "health"] for part in (calm, busy, late)]
    health = [[note for note in part if note[1] == "health"] for part in (calm, busy, late)]
    return [
        Figure("memory, peak", peak, memory + MEMORY_GROWTH, "MiB", memory),
        Figure("memory, after", left, memory + MEMORY_GROWTH, "MiB", memory),
        Figure("disk growth", grown, disk_budget / MIB, "MiB"),
        *latencies("people", people[0], people[1]),
        *latencies("/health", health[0], health[1]),
        Figure("people refused", len(failures(busy)), 0, "", len(failures(calm))),
        *kept(report["checked"]),
        recovered("people", people[0], people[2]),
        recovered("/health", health[0], health[2]),
        Figure("after: refused", len(failures(late)), 0),
    ]


def kept(checked: Mapping[str, Mapping[str, int]]) -> list[Figure]:
    """What became of mail and rooms together."""
    names = {
        "lost": "acknowledged and lost",
        "doubled": "acknowledged and doubled",
        "gaps": "gaps in rooms",
    }
    return [
        Figure(name, sum(each.get(what, 0) for each in checked.values()), 0)
        for what, name in names.items()
    ]


def table(figures: Iterable[Figure]) -> str:
    """The figures for people."""
    lines = [f"  {'':<26} {'quiet':>10} {'siege':>10} {'at most':>10}"]
    for each in figures:
        quiet = "" if each.quiet is None else f"{each.quiet:,.1f}"
        verdict = "kept" if each.is_kept else "MISSED"
        lines.append(
            f"  {each.name:<26} {quiet:>10} {each.value:>10,.1f} {each.bound:>10,.1f}"
            f" {each.unit:<4} {verdict}"
        )
    return "\n".join(lines)


def operations(notes: Iterable[Note]) -> dict[str, dict[str, float]]:
    """How often each thing was done, its median, its p99 and its longest, in milliseconds."""
    kinds: dict[str, list[Note]] = {}
    for note in notes:
        kinds.setdefault(note[1], []).append(note)
    return {
        kind: {"count": len(some), "failed": len(failures(some))}
        | {name: round(quantile(some, share) * 1000, 2) for name, share, _ in BOUNDS}
        for kind, some in kinds.items()
    }


def common(said: Iterable[str], most: int = 5) -> list[str]:
    """The most frequent sentences, each with its count."""
    return [f"{count} × {text}" for text, count in Counter(said).most_common(most)]
