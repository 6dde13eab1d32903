"""The data folder: where a hub keeps its database, key, lock and control socket, for itself alone.

`Paths` are the names of these things, `DataFolder` is a folder this process has taken, and
`examine` looks at a folder and tells what it finds, changing nothing.
"""

from __future__ import annotations

from folkmoot.datafolder.examination import Finding, Level, examine
from folkmoot.datafolder.folder import DataFolder
from folkmoot.datafolder.lock import running_hub
from folkmoot.datafolder.paths import Paths

__all__ = ["DataFolder", "Finding", "Level", "Paths", "examine", "running_hub"]
