"""Settings read from a text, in an empty folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.settings import Loaded, load


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load_text(text: str, environ: Mapping[str, str] | None = None, **options: object) -> Loaded:
    """Settings from a file `hub.toml` of this text."""
    Path("hub.toml").write_text(text, encoding="utf-8")
    return load("hub.toml", environ=environ or {}, options=options)


def refused(file: Path | str | None = None, **given: object) -> list[str]:
    """What is told of settings that are not taken."""
    with pytest.raises(e.SettingsError) as caught:
        load(file, **{"environ": {}, **given})
    told: list[str] = caught.value.data["problems"]
    assert caught.value.message.splitlines() == told
    return told


def problems(text: str, environ: Mapping[str, str] | None = None, **options: object) -> list[str]:
    """What is told of a file of this text."""
    Path("hub.toml").write_text(text, encoding="utf-8")
    return refused("hub.toml", environ=environ or {}, options=options)


def cases(table: dict[Any, list[Any]]) -> list[tuple[Any, Any]]:
    """The rows of a table by what is expected of them."""
    return [(expected, given) for expected, every in table.items() for given in every]
