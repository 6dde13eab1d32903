"""The clocks of a running hub."""

from __future__ import annotations

import time

from folkmoot.cluster.lease import boot_time


class SystemClock:
    """`core.ports.Clock` by the machine's own clock."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


class ServerClock:
    """`core.ports.Clock` by the clock of a database server, which all hubs of a database share.

    Until the server was asked it is the machine's. It does not follow steps of the machine's clock,
    and it goes on while the machine sleeps.
    """

    monotonic = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self._ahead = time.time() - boot_time()

    def now(self) -> float:
        """Seconds since the epoch."""
        return boot_time() + self._ahead

    def hear(self, told: float, asked: float, answered: float) -> None:
        """Take over a time that the server told between two moments of `boot_time`.

        One that may be the present one changes nothing, since how long the question and the answer
        took is not known.
        """
        if not asked + self._ahead <= told <= answered + self._ahead:
            self._ahead = told - (asked + answered) / 2
