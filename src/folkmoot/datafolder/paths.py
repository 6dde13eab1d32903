"""The names of things in a data folder."""

from __future__ import annotations

import stat
from pathlib import Path

from msgspec import Struct

from folkmoot.core.errors import DataFolderUnwritable

FOLDER_MODE = 0o700
FILE_MODE = 0o600
OTHERS = 0o077
"""The rights that nobody but the owner needs."""


class Paths(Struct, frozen=True):
    """The names of things in a data folder, whether they are there or not."""

    folder: Path

    @property
    def database(self) -> Path:
        """The database."""
        return self.folder / "folkmoot.db"

    @property
    def master_key(self) -> Path:
        """The file of the master key."""
        return self.folder / "master.key"

    @property
    def control_socket(self) -> Path:
        """Where a running hub takes its operator's commands."""
        return self.folder / "control.sock"

    @property
    def lock(self) -> Path:
        """What a running hub holds; it names the hub's process."""
        return self.folder / "hub.lock"

    def database_exists(self) -> bool:
        """Whether there is a database; an empty file is none, and what is no file is refused."""
        try:
            status = self.database.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise DataFolderUnwritable(
                f"{self.database}: cannot be examined: {error.strerror}."
            ) from error
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a file"
            raise DataFolderUnwritable(f"{self.database}: is {what}, not a database file.")
        return status.st_size > 0
