"""The files of clients under the new name, in every spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from folkmoot.core.errors import ProjectUnusable
from folkmoot.names.generate.plan import Plan
from folkmoot.names.generate.rename.renaming import Renaming
from folkmoot.names.generate.rename.rewriting import rewrite

SUFFIXES = frozenset({".json", ".jsonc", ".toml", ".yaml", ".yml", ".md", ".rst", ".txt", ".py"})
LEFT_OUT = frozenset({"node_modules", "__pycache__", "site-packages"})
MOST_FILES = 20_000
PATTERN = re.compile(r"""[\w:/.{}-]*\*[\w:/.{}*-]*""")


def plan_clients(paths: Sequence[Path], renaming: Renaming) -> tuple[Plan, list[str]]:
    """The plan, and places with a pattern that took in the old name and not the new one.

    Raises `ProjectUnusable` for a path that is not there.
    """
    plan = Plan(Path.cwd())
    doubtful = []
    for path in files(paths):
        text = plan.read(path)
        if text is None:
            continue
        plan.write(path, rewrite(text, renaming.rules, path.suffix))
        lines = enumerate((plan.read(path) or "").splitlines(), 1)
        doubtful += [
            f"{path}:{number}: {found}"
            for number, line in lines
            for found in patterns(line, renaming)
        ]
    return plan, doubtful


def files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files that are named, and those of the usual kinds in the folders that are."""
    count = 0
    for path in paths:
        if not path.exists():
            raise ProjectUnusable(f"{path}: there is no such file or folder.")
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            inside = file.relative_to(path).parts[:-1]
            left_out = any(part.startswith(".") or part in LEFT_OUT for part in inside)
            if file.is_file() and not left_out and (file == path or file.suffix in SUFFIXES):
                count += 1
                if count > MOST_FILES:
                    raise ProjectUnusable(f"There are more than {MOST_FILES} files; name fewer.")
                yield file


def patterns(line: str, renaming: Renaming) -> Iterator[str]:
    """Patterns over names, such as `tools/call:ns:create_*`, that the new name slips out of."""
    if renaming.what == "namespace":
        return
    old, new = renaming.full
    for found in PATTERN.findall(line):
        tail = f"{renaming.namespace}:{found.rpartition(f'{renaming.namespace}:')[2]}"
        ours = f"{renaming.namespace}:" in found
        if ours and fnmatchcase(old, tail) and not fnmatchcase(new, tail):
            yield found
