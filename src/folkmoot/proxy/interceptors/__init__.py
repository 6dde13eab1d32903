"""The interceptors that come with the program, each made from the options of a rule.

- `view`: a message as they look at it; `jsonpath`: paths into it
- `tools`, `schemacheck`, `scrub`, `redact`, `limits`, `trouble`: what they do
- `table`: all of them by name
"""
