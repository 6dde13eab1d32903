"""`make bench`: every benchmark in one run. Ratios against floors; times are this machine's."""

from __future__ import annotations

import platform
import sys

from benchmarks import core, store

BENCHMARKS = {"core": core.main, "store": store.main}


def main() -> int:
    """Run the benchmarks named on the command line, or all."""
    wanted = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
        return 2
    print(f"Python {platform.python_version()} on {platform.machine()}")
    for name in wanted:
        BENCHMARKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
