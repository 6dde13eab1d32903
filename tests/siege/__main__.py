"""`python -m tests.siege` besieges a hub; `python -m tests.siege soak` loads one for long."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.siege import siege, soak
from tests.siege.attacks import ATTACKS


def main() -> int:
    """Besiege or soak a hub; the exit code is 1 when a bound was not kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.siege", description=__doc__)
    parser.add_argument("what", nargs="?", default="siege", choices=("siege", "soak", "list"))
    parser.add_argument("--seconds", type=float, default=60, help="of quiet, and of attack")
    parser.add_argument("--minutes", type=float, default=60, help="of a soak")
    parser.add_argument("--only", default="", metavar="NAME", help="one attack alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to keep every figure")
    options = parser.parse_args()
    if options.what == "list":
        for attack in ATTACKS:
            print(f"  {attack.name:<30} {attack.how!s:>12}")
        return 0
    if options.what == "soak":
        outcome = soak.soak(options.minutes)
        print(soak.printed(outcome))
    elif options.only not in ("", *(attack.name for attack in ATTACKS)):
        parser.error(f"no attack is called {options.only!r}; `list` shows them")
    else:
        outcome = siege.besiege(options.seconds, options.only)
        print(siege.printed(outcome))
    if options.json:
        outcome.write(options.json)
    return 0 if outcome.is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
