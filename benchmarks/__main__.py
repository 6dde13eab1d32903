"""`make bench`: every benchmark in one run. Ratios against floors; times are this machine's."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from functools import partial

from benchmarks import cluster, core, events, gateway, mail, path, proxy, rooms, store

QUICK = "--quick"


def benchmarks(*, quick: bool) -> dict[str, Callable[[], None]]:
    """All of them by name; the quick ones take less time, leave out rivals and tell less."""
    return {
        "core": core.main,
        "store": store.main,
        "events": events.main,
        "mail": partial(mail.main, quick=quick),
        "rooms": partial(rooms.main, quick=quick),
        "proxy": partial(proxy.main, quick=quick),
        "gateway": partial(gateway.main, quick=quick),
        "path": path.main,
        "cluster": partial(cluster.main, quick=quick),
    }


def main() -> int:
    """Run the benchmarks named on the command line, or all."""
    named = [name for name in sys.argv[1:] if name != QUICK]
    known = benchmarks(quick=QUICK in sys.argv)
    wanted = named or list(known)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
        return 2
    print(f"Python {platform.python_version()} on {platform.machine()}")
    for name in wanted:
        known[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
