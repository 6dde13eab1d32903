"""The pytest plugin: record an MCP server once, then test against the recording.

- `plugin`: loaded by pytest: the marker `tape`, the fixture `tape`, the option `--tapes`
- `recorded`: `RecordedServer`, the value of the fixture
- `keeping`: writes what was recorded in a test to one tape
- `background`: an event loop in its own thread, for servers that a test uses over HTTP

pytest loads the plugin in every run, so it imports the other modules only when a test needs them.
"""

from __future__ import annotations
