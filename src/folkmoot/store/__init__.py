"""Durable state: one database, one writer, a few readers.

A *unit* is one user-visible action: an async function of its *transaction* that awaits nothing
else. The *writer* runs the units that wait, each in a savepoint of its own, and commits them
together (*group commit*); a caller is answered after the commit that holds its unit. The *loop
reader* runs short queries on what is committed, and the *readers* those it gives up. *Migrations*
are numbered SQL files that bring a database to the *schema* this program knows. `sqlite.py` and
`tx.py` are the dialect: everything that is peculiar to SQLite.

Other packages import from here alone, and the words of SQL they use are those that PostgreSQL
understands too: `tests/store/test_portable.py` holds them to it.
"""

from __future__ import annotations

from folkmoot.store.backup import copy_database
from folkmoot.store.inspection import DatabaseInfo, find_faults, inspect_database, look_up
from folkmoot.store.meta import read_identity
from folkmoot.store.restore import put_in_place, remove_database
from folkmoot.store.sqlite import Synchronous, engine_version
from folkmoot.store.store import SqliteStore
from folkmoot.store.target import check_target
