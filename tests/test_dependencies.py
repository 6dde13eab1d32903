"""What the package needs of others: declared, and nothing more."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "folkmoot"
FOR_WORK = {"build", "browser", "dev", "servers"}
"""Extras for working on the project."""
IMPORT = re.compile(r"^ *(?:from|import) +([\w.]+)(?= import| as|,|$)", re.MULTILINE)
PACKAGES = {"nacl": "pynacl", "opentelemetry": "opentelemetry-sdk"}
"""Modules that have another name than their package."""
BESIDE = {"opentelemetry-exporter-otlp-proto-http"}
"""Packages that add to a module of another."""


def declared() -> dict[str, str]:
    """The packages that Folkmoot and its extras need, with their bounds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    rows = [*project["dependencies"]]
    for extra, packages in project["optional-dependencies"].items():
        rows += [] if extra in FOR_WORK else packages
    found = (re.match(r"([\w-]+)(.*)", row) for row in rows)
    return {each[1]: each[2] for each in found if each is not None}


def imported() -> dict[str, set[str]]:
    """The modules of others that are imported, with the files that do."""
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for name in IMPORT.findall(path.read_text()):
            if name.split(".")[0] not in {*sys.stdlib_module_names, "folkmoot"}:
                found.setdefault(name, set()).add(path.relative_to(SOURCE).as_posix())
    return found


def test_whatever_is_imported_is_declared_and_the_other_way_round() -> None:
    tops = {name.split(".")[0] for name in imported()}
    used = {PACKAGES.get(name, name.replace("_", "-")) for name in tops}
    # pytest is that of whoever tests with the plugin.
    assert used - {"pytest"} == set(declared()) - BESIDE
