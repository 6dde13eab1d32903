"""The official MCP conformance suite, run against a real hub: `make conformance`.

- `node`: what the tests need of npm, installed once into `.node`
- `fixtures`: what the suite expects to find on a server, as a service of stateless requests
- `mount`, `serve`: a hub that has it
- `suite`: one run of the suite, and what came of it
"""
