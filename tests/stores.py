"""The store that tests of services run on: SQLite, or PostgreSQL where the run asks for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from folkmoot.store import SqliteStore
from tests import postgres

CHOSEN = "TEST_STORE"
ON_POSTGRES = os.environ.get(CHOSEN) == "postgres"


async def open_store(path: Path, **options: Any) -> Any:
    """A store of its own for a file, or for the schema that stands for it."""
    if not ON_POSTGRES:
        return await SqliteStore.open(path, **options)
    from folkmoot.store.postgres import PostgresStore

    kept = {name: value for name, value in options.items() if name in {"bus", "queue"}}
    url = await postgres.schema_of(path, migrated=True)
    return await PostgresStore.open(url, connections=4, **kept)
