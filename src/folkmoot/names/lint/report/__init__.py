"""How findings are told: to people in lines, to programs as JSON or SARIF."""

from __future__ import annotations
