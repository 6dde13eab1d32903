"""The count of rules in `reference/requirements.md`, from the manifest beside the tests."""

from __future__ import annotations

from tests.interaction.manifest import summary_table

BLOCKS = {"requirements": summary_table}
