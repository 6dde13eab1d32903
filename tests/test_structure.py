"""The shape of the source: names that are used once, and files that read as a chapter.

The numbers may only go down: whoever lowers one writes the new number here.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "folkmoot"
GENERATED = {"client/methods.py", "cli/generated.py"}
"""Made from the table of operations, whose structs they repeat."""

MOST_REPEATED_NAMES = 8
"""Class names that are defined in more than one place; the goal is 25."""
MOST_SHORT_FILES = 41
"""Files under fifty lines; the goal is 40."""
SHORT = 50


def sources() -> dict[str, str]:
    found = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    return {name: path.read_text() for name, path in found.items() if name not in GENERATED}


def test_no_more_class_names_are_used_twice_than_before():
    defined = re.compile(r"^ *class (\w+)[(:\[]", re.MULTILINE)
    places = Counter(name for text in sources().values() for name in defined.findall(text))
    repeated = sorted(name for name, times in places.items() if times > 1)
    assert len(repeated) <= MOST_REPEATED_NAMES, repeated


def test_no_more_files_are_fragments_than_before():
    # A table of limits is as long as it is.
    chapters = {name: text for name, text in sources().items() if Path(name).name != "limits.py"}
    short = sorted(name for name, text in chapters.items() if text.count("\n") < SHORT)
    assert len(short) <= MOST_SHORT_FILES, short
