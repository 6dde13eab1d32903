"""The data folder: the private folder for a hub's database, key, lock and control socket.

`Paths` has the paths of these files, `DataFolder` is a folder that this process has locked, and
`examine` inspects a folder and changes nothing.
"""

from __future__ import annotations

from folkmoot.datafolder.examination import Finding, Level, examine
from folkmoot.datafolder.folder import DataFolder, Paths, running_hub
