"""Asks in the store: made, looked at, waited for and decided, each in one unit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Protocol
from uuid import uuid4

import msgspec
from msgspec import Struct

from folkmoot import decisions
from folkmoot.accounts.model import Account
from folkmoot.accounts.people import access_recipient
from folkmoot.accounts.queries import by_handle
from folkmoot.asks.limits import MAX_LASTING, MAX_OPEN, MAX_WAITING
from folkmoot.asks.machine import Ending, Lasting, StoredAsk, Wish, bound
from folkmoot.asks.receipts import Receipts
from folkmoot.core import errors as e
from folkmoot.core.events import ASKS, subject
from folkmoot.core.ports import Bus, Clock, Store, Tx
from folkmoot.rows import insert, many, one

_COLUMNS: Final = ", ".join(f"a.{name}" for name in StoredAsk.__struct_fields__)
_FIND: Final = (
    f"SELECT {_COLUMNS}, u.handle, u.account_type, d.handle FROM asks a "  # noqa: S608
    "JOIN users u ON u.id = a.asker_id JOIN users d ON d.id = a.decider_id "
)


class ShownAsk(Struct, frozen=True):
    """An ask with the names of those it concerns."""

    ask: StoredAsk
    by: str
    by_type: str
    to: str


def _shown(*row: object) -> ShownAsk:
    fields = StoredAsk.__struct_fields__
    ask = StoredAsk(**dict(zip(fields, row, strict=False)))  # type: ignore[arg-type]
    return ShownAsk(ask, *map(str, row[len(fields) :]))


class Runner(Protocol):
    """Does what rules of the hub ask about, once it is approved."""

    async def check(self, ask: StoredAsk, instead_of: StoredAsk | None = None) -> float:
        """Refuse to start what is not what was shown any more, and other arguments than were asked
        about if a rule says something else about them; else how long it can take.
        """

    def run(self, ask: StoredAsk) -> None:
        """Start it; nobody waits for it."""


class Asks:
    """The asks of a hub."""

    runner: Runner | None = None

    def __init__(self, store: Store, bus: Bus, clock: Clock, receipts: Receipts) -> None:
        self._store, self._bus, self._clock, self.receipts = store, bus, clock, receipts

    async def make(
        self, asker: Account, credential_id: str, client: str, to: str, wish: Wish
    ) -> ShownAsk:
        """Ask someone who takes mail from the asker; or oneself, by the handle of one's own.

        A rule of the hub asks anyone, and once for equal calls.
        """
        id_, now = str(uuid4()), self._clock.now()
        call = wish.call(to)

        async def unit(tx: Tx) -> ShownAsk:
            decider = await (
                _named(tx, to, int(now)) if call else access_recipient(tx, asker, to, int(now))
            )
            equal = "a.asker_id = ? AND a.state = 'open' AND a.until > ? AND a.call = ?"
            if call and (
                found := await one(tx, _shown, f"{_FIND} WHERE {equal}", (asker.id, now, call))
            ):
                return found
            for column, whose, most in (
                ("asker_id", asker, MAX_OPEN),
                ("decider_id", decider, MAX_WAITING),
            ):
                if await _count(tx, column, whose.id, now) >= most:
                    raise e.TooManyAsks(f"@{whose.handle} has {most} open asks already.")
            ask = StoredAsk(
                id=id_,
                asker_id=asker.id,
                credential_id=credential_id,
                client=client,
                decider_id=decider.id,
                tool=wish.tool,
                bound=bound(id_, asker.handle, decider.handle, wish),
                why=wish.why,
                at=now,
                until=wish.until,
                call=call,
                rule=wish.rule,
                person=int(wish.person),
            )
            await insert(tx, "asks", msgspec.structs.asdict(ask))
            _publish(tx, ask, "made")
            return ShownAsk(ask, asker.handle, asker.account_type, decider.handle)

        return await self._store.write(unit)

    async def find(self, who: Account, ask_id: str) -> ShownAsk:
        """An ask of someone's, or one that they are to decide.

        What its time has ended is noted before anyone is told, so that it stays so, whatever the
        clock is set to later.
        """
        return await self._find(who, ask_id, self._clock.now())

    async def _find(self, who: Account, ask_id: str, now: float) -> ShownAsk:
        found = await self._store.read(lambda tx: _access(tx, who, ask_id))
        if found.ask.standing(now) == found.ask.state:
            return found

        async def unit(tx: Tx) -> ShownAsk:
            found = await _access(tx, who, ask_id)
            state = found.ask.standing(now)
            await tx.execute("UPDATE asks SET state = ? WHERE id = ?", (state, ask_id))
            return msgspec.structs.replace(
                found, ask=msgspec.structs.replace(found.ask, state=state)
            )

        return await self._store.write(unit)

    async def wait(self, who: Account, ask_id: str, seconds: float) -> ShownAsk:
        """The same once it has ended, or when the time is over."""
        # Subscribed before the first look, so that nothing falls between the two.
        subscription = await self._bus.subscribe(subject(ASKS, who.id))
        news: asyncio.Future[Any] | None = None
        try:
            events, found = aiter(subscription), await self.find(who, ask_id)
            # How long somebody waits has nothing to do with what the clock on the wall is set to.
            ends = self._clock.monotonic() + seconds
            while (by := found.ask.settles_by) is not None and (
                left := ends - self._clock.monotonic()
            ) > 0:
                news = news or asyncio.ensure_future(anext(events, None))
                await asyncio.wait({news}, timeout=min(left, by - self._clock.now()))
                if news.done():
                    if news.result() is None:
                        raise e.HubStopping("The hub is stopping; try again in a moment.")
                    news = None
                found = await self.find(who, ask_id)
        finally:
            if news is not None:
                news.cancel()
            await subscription.close()
        return found

    async def waiting(self, decider_id: str) -> list[ShownAsk]:
        """What waits for someone, what ends first first."""
        return await self._store.read(
            lambda tx: many(
                tx,
                _shown,
                f"{_FIND} WHERE a.decider_id = ? AND a.state = 'open' AND a.until > ? "
                "ORDER BY a.until LIMIT ?",
                (decider_id, self._clock.now(), MAX_WAITING),
            )
        )

    async def count_waiting(self, decider_id: str) -> int:
        """How much waits for someone."""
        now = self._clock.now()
        return await self._store.read(lambda tx: _count(tx, "decider_id", decider_id, now))

    async def end(
        self,
        who: Account,
        ask_id: str,
        ending: Ending,
        presence: str | None = None,
        reason: str | None = None,
        lasting: Lasting | None = None,
    ) -> ShownAsk:
        """Approve, reject or withdraw; whoever comes first has decided.

        What the hub is to do is started by the unit that approves it, which can be done once. With
        `lasting` the approval is good for other calls too.
        """
        run_for, now = 0.0, self._clock.now()
        ask = (await self._find(who, ask_id, now)).ask
        # What is not open any more says so below.
        if ending == "approved" and ask.rule and ask.state == "open" and self.runner is not None:
            run_for = await self.runner.check(ask)

        async def unit(tx: Tx) -> ShownAsk:
            found = await _access(tx, who, ask_id)
            ask = found.ask
            if who.id != (ask.asker_id if ending == "withdrawn" else ask.decider_id):
                raise e.AskNotYours
            ask.check_open(now)
            changed: dict[str, Any] = {
                "state": ending, "decided_at": now, "presence": presence, "reason": reason,
            }  # fmt: skip
            if lasting is not None:
                changed |= await _lasting(tx, found, lasting, now)
            if ending != "withdrawn":
                changed |= await self._decided(tx, found, changed, run_for, ending)
            await _end(tx, ask, changed)
            return msgspec.structs.replace(found, ask=msgspec.structs.replace(ask, **changed))

        ended = await self._store.write(unit)
        if run_for and self.runner is not None:
            self.runner.run(ended.ask)
        return ended

    async def edit(
        self,
        who: Account,
        ask_id: str,
        arguments: dict[str, Any],
        presence: str | None = None,
        reason: str | None = None,
    ) -> ShownAsk:
        """Approve other arguments: another ask that has these takes its place, approved."""
        id_, now = str(uuid4()), self._clock.now()
        found = await self._find(who, ask_id, now)
        old = found.ask
        if who.id != old.decider_id:
            raise e.AskNotYours
        old.check_open(now)
        wish = msgspec.structs.replace(old.wish, arguments=arguments)
        new = msgspec.structs.replace(
            old,
            id=id_,
            at=now,
            bound=bound(id_, found.by, found.to, wish),
            call=wish.call(found.to),
        )
        run_for = 0.0
        if new.rule and self.runner is not None:
            run_for = await self.runner.check(new, old)
        decided = {"decided_at": now, "presence": presence, "reason": reason}

        async def unit(tx: Tx) -> ShownAsk:
            ask = (await _access(tx, who, ask_id)).ask
            ask.check_open(now)
            shown = msgspec.structs.replace(found, ask=new)
            approved = {**decided, "state": "approved"}
            approved |= await self._decided(tx, shown, approved, run_for, "edited")
            ended = msgspec.structs.replace(new, **approved)
            await insert(tx, "asks", msgspec.structs.asdict(ended))
            await _end(tx, ask, {**decided, "state": "edited", "edited_as": id_})
            return msgspec.structs.replace(shown, ask=ended)

        ended = await self._store.write(unit)
        if run_for and self.runner is not None:
            self.runner.run(ended.ask)
        return ended

    async def _decided(
        self,
        tx: Tx,
        found: ShownAsk,
        decided: Mapping[str, Any],
        run_for: float,
        how: decisions.Verdict,
    ) -> dict[str, Any]:
        """Note who decided; what else is to be noted with the ask."""
        now = decided["decided_at"]
        changed: dict[str, Any] = {"receipt": await self.receipts.sign(tx, _claims(found, decided))}
        if run_for:
            changed |= {"state": "running", "run_until": now + run_for}
        await decisions.insert(tx, _noted(found.ask, how, now, decided["reason"]))
        return changed

    async def lasting(self, asker: Account, to: str, wish: Wish) -> StoredAsk | None:
        """The approval that is good for this call too, if there is one."""
        now = self._clock.now()

        async def unit(tx: Tx) -> StoredAsk | None:
            decider = await _named(tx, to, int(now))
            if decider.suspended_at is not None:
                return None
            found = await many(
                tx,
                _shown,
                f"{_FIND} WHERE a.decider_id = ? AND a.lasts_until > ? AND a.asker_id = ? "
                "AND a.tool = ? LIMIT ?",
                (decider.id, now, asker.id, wish.tool, MAX_LASTING),
            )
            stands: dict[str, str] = {}
            for it in found:
                same = it.ask.same or "[]"
                if same not in stands:
                    stands[same] = wish.like(decider.handle, msgspec.json.decode(same))
                if stands[same] == it.ask.lasting:
                    return it.ask
            return None

        return await self._store.read(unit)

    async def lasting_of(self, decider_id: str) -> list[ShownAsk]:
        """The approvals of someone that last, what ends first first."""
        return await self._store.read(
            lambda tx: many(
                tx,
                _shown,
                f"{_FIND} WHERE a.decider_id = ? AND a.lasts_until > ? ORDER BY a.lasts_until",
                (decider_id, self._clock.now()),
            )
        )

    async def stop(self, who: Account, ask_id: str) -> ShownAsk:
        """Have an approval be good for nothing more."""
        now = self._clock.now()
        await self._find(who, ask_id, now)

        async def unit(tx: Tx) -> ShownAsk:
            found = await _access(tx, who, ask_id)
            if who.id != found.ask.decider_id:
                raise e.AskNotYours
            if not found.ask.lasts(now):
                raise e.AskClosed("It does not last.", state=found.ask.state)
            await tx.execute("UPDATE asks SET lasts_until = NULL WHERE id = ?", (ask_id,))
            _publish(tx, found.ask, "stopped")
            ask = msgspec.structs.replace(found.ask, lasts_until=None)
            return msgspec.structs.replace(found, ask=ask)

        return await self._store.write(unit)

    async def approved_before(self, ask: StoredAsk) -> int:
        """How often its decider has approved the very same call."""
        if not ask.call:
            return 0
        row = await self._store.read(
            lambda tx: tx.fetch_one(
                "SELECT COUNT(*) FROM asks WHERE asker_id = ? AND call = ? "
                "AND state IN ('running', 'done')",
                (ask.asker_id, ask.call),
            )
        )
        return 0 if row is None else int(row[0])

    async def done(self, ask: StoredAsk, result: bytes) -> None:
        """Note what the tool answered; after its time, what came of it stays unknown."""

        async def unit(tx: Tx) -> None:
            noted = await tx.execute(
                "UPDATE asks SET state = 'done', result = ? "
                "WHERE id = ? AND state = 'running' AND run_until > ?",
                (result, ask.id, self._clock.now()),
            )
            if noted:
                _publish(tx, ask, "done")

        await self._store.write(unit)


async def asks_of(tx: Tx, account_id: str) -> list[ShownAsk]:
    """Within a unit: what someone asked, and was asked, that is still kept."""
    return await many(
        tx, _shown, f"{_FIND} WHERE a.asker_id = ? OR a.decider_id = ? ORDER BY a.at",
        (account_id, account_id),
    )  # fmt: skip


async def _count(tx: Tx, column: str, account_id: str, now: float) -> int:
    """How many open asks someone has, or has to decide."""
    row = await tx.fetch_one(
        f"SELECT COUNT(*) FROM asks WHERE {column} = ? AND state = 'open' AND until > ?",  # noqa: S608
        (account_id, now),
    )
    return 0 if row is None else int(row[0])


async def _named(tx: Tx, handle: str, now: int) -> Account:
    """Whom a rule asks."""
    account = await by_handle(tx, handle, now)
    if account is None:
        raise e.UserNotFound(f"There is no account @{handle} to ask.")
    return account


async def _access(tx: Tx, who: Account, ask_id: str) -> ShownAsk:
    found = await one(tx, _shown, f"{_FIND} WHERE a.id = ?", (ask_id,))
    if found is None or who.id not in (found.ask.asker_id, found.ask.decider_id):
        raise e.AskUnknown
    return found


async def _end(tx: Tx, ask: StoredAsk, changed: Mapping[str, Any]) -> None:
    marks = ", ".join(f"{name} = ?" for name in changed)
    done = await tx.execute(
        f"UPDATE asks SET {marks} WHERE id = ? AND state = 'open'",  # noqa: S608
        (*changed.values(), ask.id),
    )
    if not done:
        raise e.AskClosed("Someone was faster.", state="approved")
    _publish(tx, ask, "ended")


async def _lasting(tx: Tx, found: ShownAsk, lasting: Lasting, now: float) -> dict[str, Any]:
    ask = found.ask
    row = await tx.fetch_one(
        "SELECT COUNT(*) FROM asks WHERE decider_id = ? AND lasts_until > ?", (ask.decider_id, now)
    )
    if row is not None and row[0] >= MAX_LASTING:
        raise e.TooManyAsks(f"{MAX_LASTING} of your approvals last already; end one of them.")
    return {
        "lasts_until": now + lasting.seconds,
        "same": msgspec.json.encode(lasting.same).decode(),
        "lasting": ask.wish.like(ask.told["decider"], lasting.same),
    }


def _claims(found: ShownAsk, decided: Mapping[str, Any]) -> dict[str, Any]:
    ask, told = found.ask, found.ask.told
    names = {name: each for name, each in told.items() if name != "arguments"}
    return {
        **names,
        "digest": ask.digest,
        "verdict": decided["state"],
        "presence": decided["presence"] or "none",
        **({"lasts_until": int(decided["lasts_until"])} if "lasts_until" in decided else {}),
    }


def _publish(tx: Tx, ask: StoredAsk, change: str) -> None:
    for whose in dict.fromkeys((ask.decider_id, ask.asker_id)):
        tx.publish(subject(ASKS, whose), {"id": ask.id, "change": change})


def _noted(
    ask: StoredAsk, how: decisions.Verdict, now: float, reason: str | None
) -> decisions.NewDecision:
    return decisions.NewDecision(
        account=ask.decider_id,
        id=ask.id,
        at=now,
        kind="call",
        decision=how,
        about=ask.id,
        what=ask.tool,
        place=ask.client,
        asked_by=ask.asker_id,
        reason=reason,
        ended_at=now,
    )
