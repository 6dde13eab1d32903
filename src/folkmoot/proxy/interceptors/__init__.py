"""The interceptors that come with the program, each made from the options of a rule.

- `base`: what they are, and a message as they look at it
- `tools`, `descriptions`, `redact`, `limits`, `trouble`: what they do

`rules.file` has the table of all of them by name.
"""
