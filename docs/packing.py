"""The build backend: flit's, which packs what is below `src`, after making the pages for `/docs`.

`python -m docs.packing` only makes the pages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flit_core import buildapi
from flit_core.buildapi import *  # noqa: F403

from docs.pages import site

ROOT = Path(__file__).parents[1]


def build_wheel(*arguments: Any, **named: Any) -> str:
    """A wheel that can serve `/docs`."""
    site.write(ROOT)
    return buildapi.build_wheel(*arguments, **named)


def build_editable(*arguments: Any, **named: Any) -> str:
    """An installation of this clone; `make` renders its pages again when they change."""
    site.write(ROOT)
    return buildapi.build_editable(*arguments, **named)


if __name__ == "__main__":
    site.write(ROOT)
