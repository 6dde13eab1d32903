"""Which version of a package is running."""

from __future__ import annotations

import sys

from folkmoot.names.versions import numbers_of


def running_version(module: str) -> str | None:
    """The version of the package that a module is in: as installed, else as its `__version__`.

    None where neither is known, or is no version.
    """
    from importlib import metadata

    package = _package(module)
    if not package:
        return None
    found: object
    try:
        found = metadata.version(package)
    except metadata.PackageNotFoundError:
        found = getattr(sys.modules.get(package), "__version__", None)
    if found is None:
        # An import package may have another name than its distribution; to find out is slow.
        for distribution in metadata.packages_distributions().get(package, ()):
            found = metadata.version(distribution)
    return found if isinstance(found, str) and numbers_of(found) else None


def _package(module: str) -> str:
    """The top-level package, also of a module that was started with `python -m`."""
    if module == "__main__":
        module = getattr(getattr(sys.modules.get(module), "__spec__", None), "name", None) or ""
    return module.partition(".")[0]
