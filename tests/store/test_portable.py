"""No other package knows which engine the store runs on."""

from __future__ import annotations

import re
from pathlib import Path

import folkmoot

SOURCE = Path(folkmoot.__file__).parent
ENGINES = {"apsw", "sqlite3", "asyncpg"}
# The store, and the bridge, which keeps a file of its own on its user's machine.
OWN = ("store", "bridge")
FRONT = {"folkmoot.store", "folkmoot.store.meta", "folkmoot.store.postgres"}
IMPORT = re.compile(r"^ *(?:from|import) ([\w.]+)", re.MULTILINE)


def test_nothing_outside_the_store_knows_its_engine():
    modules = [(file.relative_to(SOURCE), file.read_text()) for file in SOURCE.rglob("*.py")]
    found = [
        (str(name), module)
        for name, source in modules
        if name.parts[0] not in OWN
        for module in IMPORT.findall(source)
        if module.split(".")[0] in ENGINES
        or (module.startswith("folkmoot.store.") and module not in FRONT)
    ]
    assert found == []
