"""Prompter: finds the recorded call for a live request, and remembers how far it came."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from folkmoot.core.errors import TapeExhausted
from folkmoot.core.message import Notification, Request
from folkmoot.proxy.replay.nearest import not_on_tape, used_up
from folkmoot.proxy.replay.script import Call, Script
from folkmoot.proxy.replay.subject import Mode, Subject, subject_of
from folkmoot.proxy.tape.places import Pattern


class _Group(msgspec.Struct):
    """Calls that ask for one thing, in their order."""

    subject: Subject
    calls: list[Call]


class Index:
    """A script by what is asked in it; made once, used by every conversation."""

    def __init__(self, script: Script, mode: Mode, ignore: Sequence[str] = ()) -> None:
        self.script = script
        self._mode = mode
        self._ignore = tuple(map(Pattern, ignore))
        self._groups: dict[bytes, _Group] = {}
        self._redacted: dict[str, list[_Group]] = defaultdict(list)
        for call in script.calls:
            subject = self._subject(call.message)
            group = self._groups.get(subject.key)
            if group is None:
                group = self._groups[subject.key] = _Group(subject, [])
                if subject.redacted:
                    self._redacted[subject.method].append(group)
            group.calls.append(call)
        self._cues: dict[str, list[Call]] = defaultdict(list)
        for cue in script.cues:
            self._cues[cue.message.method].append(cue)

    def groups(self, request: Request) -> list[_Group]:
        """What may be meant by a request, the likeliest first."""
        subject = self._subject(request)
        exactly = self._groups.get(subject.key)
        if exactly is not None:
            return [exactly]
        return [group for group in self._redacted[subject.method] if group.subject.fits(subject)]

    def missing(self, request: Request) -> TapeExhausted:
        """The error for a request that nothing is meant by."""
        return not_on_tape(request, self.script.calls, self._subject)

    def _subject(self, request: Request) -> Subject:
        return subject_of(request, self._mode, self._ignore)

    def cues(self, method: str) -> list[Call]:
        """The recorded notifications of a method."""
        return self._cues.get(method, [])


class Prompter:
    """Follows one run through a script.

    Equal requests get the recorded answers in turn; when those are used up, the last one again, or
    with `once` none.
    """

    def __init__(self, index: Index, *, once: bool = False, asked: set[int] | None = None) -> None:
        self._index = index
        self._once = once
        self._given: Counter[bytes] = Counter()
        self._cued: Counter[str] = Counter()
        self.asked = set[int]() if asked is None else asked
        """The numbers of the calls that were asked for."""

    @property
    def script(self) -> Script:
        """What is followed."""
        return self._index.script

    def call_for(self, request: Request) -> Call:
        """The recorded call that a request stands for; `TapeExhausted` when there is none."""
        groups = self._index.groups(request)
        if not groups:
            raise self._index.missing(request)
        fresh = (group for group in groups if self._given[group.subject.key] < len(group.calls))
        group = next(fresh, groups[-1])
        place = self._given[group.subject.key]
        if place >= len(group.calls) and self._once:
            raise used_up(request, len(group.calls))
        call = group.calls[min(place, len(group.calls) - 1)]
        self._given[group.subject.key] += 1
        self.asked.add(call.seq)
        return call

    def cue_for(self, notification: Notification) -> Call | None:
        """The recorded notification that a live one stands for: the n-th of its method."""
        cues = self._index.cues(notification.method)
        place = self._cued[notification.method]
        self._cued[notification.method] += 1
        return cues[place] if place < len(cues) else None
