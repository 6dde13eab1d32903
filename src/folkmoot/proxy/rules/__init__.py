"""Rules: what becomes of which messages, written in a file.

- `when`, `conditions`, `comparisons`: which messages a rule is about
- `actions`: what it does by itself; `rule`: both together
- `reading`: the file; `live`: the rules as the file changes
- `ruleset`: all rules as one interceptor
"""

from __future__ import annotations

from folkmoot.proxy.rules.live import Rules
from folkmoot.proxy.rules.ruleset import RuleSet

__all__ = ["RuleSet", "Rules"]
