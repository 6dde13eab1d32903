"""The pytest plugin: record an MCP server once, then test against the recording.

`plugin` is loaded by pytest: the marker `tape`, the fixture `tape`, the option `--tapes`. The value
of the fixture is a `RecordedServer` (`recorded`), which writes what was recorded in a test to one
tape. pytest loads the plugin in every run, so it imports `recorded` only when a test needs it.
"""

from __future__ import annotations
