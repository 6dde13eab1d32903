"""A file that appears when it is whole, for its owner alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

from folkmoot.core.errors import ExportFailed


def write_whole(target: Path, chunks: Iterable[str], *, overwrite: bool) -> None:
    """Write a file, or leave things as they were. Raises `ExportFailed`."""
    if target.is_dir():
        raise ExportFailed(f"{target}: is a folder. Give the name of a file.")
    if target.exists() and not overwrite:
        raise ExportFailed(f"{target}: already exists. --overwrite replaces it.")
    try:
        handle, name = mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        part = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as out:
                out.writelines(chunks)
            part.replace(target)
        finally:
            with suppress(OSError):
                part.unlink()
    except OSError as error:
        raise ExportFailed(f"{target}: {(error.strerror or 'unwritable').lower()}.") from error
