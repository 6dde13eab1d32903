"""Another name for a tool, a prompt, a resource or a whole namespace, everywhere at once.

A `Renaming` knows the old and the new name in every spelling. `sources` finds them in Python,
`rewriting` in any text of clients, `alias` keeps the old name working for two releases, and
`upgrading` tells those who use the server. `plan_rename` brings them together.
"""
