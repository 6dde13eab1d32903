"""The linter: what a server calls its tools, resources and prompts, held against the conventions.

`source` reads Python files by their syntax tree, without importing them, and `listed` what a live
server says of itself; both give a `Project` of `Declared` names. Each row of `rules` looks at the
project and yields `Finding`s, `fixing` mends what needs no judgement, and `report` tells the rest.
"""

from __future__ import annotations
