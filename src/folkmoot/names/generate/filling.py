"""The texts of new files, with `$name` where a project's own words belong."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template

FOLDER = Path(__file__).with_name("templates")
SUFFIX = ".in"


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def fill(name: str, words: Mapping[str, str]) -> str:
    """One file, filled in."""
    return Template(_text(FOLDER / f"{name}{SUFFIX}")).substitute(words)


def helper_text(namespace: str, name: str) -> str:
    """The helper module of a project, which makes and checks its names."""
    return fill("names.py", {"namespace": namespace, "name": name})


def fill_folder(name: str, words: Mapping[str, str]) -> dict[str, str]:
    """Every file of a folder by its path in it; a folder `package` is called as the package is."""
    base = FOLDER / name
    found = {}
    for path in sorted(base.rglob(f"*{SUFFIX}")):
        place = path.relative_to(base).as_posix().removesuffix(SUFFIX)
        filled = Template(_text(path)).substitute(words)
        found[place.replace("src/package/", f"src/{words['package']}/")] = filled
    return found
