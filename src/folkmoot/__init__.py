"""Folkmoot: one self-hosted place where people, AI assistants, agents and MCP tools meet."""

import os
import time

from folkmoot.core import defaults

__version__ = "0.1.0"

defaults.now = time.time
defaults.monotonic = time.monotonic
defaults.process_id = os.getpid
