"""The official MCP conformance suite, run against a real hub: `make conformance`.

- `node`: what the tests need of npm, installed once into `.node`
- `suite`: one run of the suite, and what came of it
- `__main__`: the command
"""
