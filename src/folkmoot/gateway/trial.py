"""The test of a server: its offer here, before anything is stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from folkmoot.gateway.limits import MAX_TRIAL_TEXT
from folkmoot.gateway.model import Inventory

if TYPE_CHECKING:
    from folkmoot.gateway.model import Definition, What
    from folkmoot.gateway.part import BackendOffer
    from folkmoot.gateway.pin_comparison import Judged
    from folkmoot.settings.backends import BackendSpec


class TestReport(Struct, frozen=True, kw_only=True):
    """What was found when a server was reached once, or why it was not."""

    __test__ = False

    namespace: str
    ok: bool
    transport: str
    target: str
    why: str = ""
    """What went wrong, in one sentence."""
    seconds: float = 0.0
    """How long it took."""
    inventory: Inventory = msgspec.field(default_factory=Inventory)
    advice: str = ""
    """What could be set to have the server work better."""


class Named(Struct, frozen=True):
    """One item of a server: its name at the hub, and its own name."""

    name: str
    own: str
    findings: tuple[str, ...] = ()
    """What its description holds and should not."""


class Tried(Struct, frozen=True, kw_only=True):
    """What came of a test."""

    ok: bool
    namespace: str
    transport: str
    target: str
    why: str = ""
    seconds: float = 0.0
    server: str = ""
    version: str = ""
    era: str = ""
    tools: list[Named] = msgspec.field(default_factory=list)
    prompts: list[Named] = msgspec.field(default_factory=list)
    resources: list[Named] = msgspec.field(default_factory=list)
    templates: list[Named] = msgspec.field(default_factory=list)
    faults: list[str] = msgspec.field(default_factory=list)
    advice: str = ""
    """What could be set to have it work better."""


async def tried(spec: BackendSpec, report: TestReport) -> Tried:
    """A server's offer as a hub shows it on first sight."""
    # Rows name what a test comes to, and must not load the store with it.
    from folkmoot.gateway.part import make_part

    found, unseen = report.inventory, FirstSight()
    part = await make_part(
        spec.namespace,
        found,
        unseen,  # type: ignore[arg-type]
        patterns=spec.tools,
        trusted=spec.trusted,
    )
    return Tried(
        ok=report.ok,
        namespace=spec.namespace,
        transport=report.transport,
        target=report.target,
        why=report.why,
        seconds=report.seconds,
        server=text(found.server.get("name")),
        version=text(found.server.get("version")),
        era=("stateless" if found.stateless else "handshake") if report.ok else "",
        tools=named_in(part, "tools"),
        prompts=named_in(part, "prompts"),
        resources=named_in(part, "resources"),
        templates=named_in(part, "templates"),
        faults=list(part.faults),
        advice=report.advice,
    )


def named_in(part: BackendOffer, what: What) -> list[Named]:
    """The entries of one list, with the findings in their descriptions."""
    found = part.findings.get(what, {})
    entries: dict[str, Any] = getattr(part, what)
    return [Named(name, each.own, found.get(name, ())) for name, each in entries.items()]


def text(value: Any) -> str:
    """A short text of a server's, if it is one."""
    return value[:MAX_TRIAL_TEXT] if isinstance(value, str) else ""


class FirstSight:
    """In place of pins: every tool is seen for the first time, and none is remembered."""

    async def judge(
        self, _: str, tools: Iterable[Definition], *, trusted: bool = False, **__: Any
    ) -> dict[str, Judged]:
        """All are new, whoever is trusted."""
        from folkmoot.gateway.pin_comparison import Judged

        return {tool["name"]: Judged("same" if trusted else "new") for tool in tools}
