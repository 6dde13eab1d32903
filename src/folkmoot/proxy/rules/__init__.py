"""Rules: what becomes of which messages, written in a file.

- `when`, `conditions`: which messages a rule is about
- `actions`: what it does by itself
- `ruleset`: all rules as one interceptor
- `file`: the file they are in, and the rules as it changes
"""

from __future__ import annotations

from folkmoot.proxy.rules.file import Rules
from folkmoot.proxy.rules.ruleset import RuleSet
