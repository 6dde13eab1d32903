"""The linter: what a server calls its tools, resources and prompts, held against the conventions.

`sources` reads Python files by their syntax tree, without importing them, or the lists of a live
server; both give a `Project` of `Declared` names. Each row of `rules` looks at the project and
yields findings; `runner` selects among them, fixes what needs no judgement and reports the rest.
"""

from __future__ import annotations
