"""The operations of rooms, each module with its structs, handlers and rows.

`membership` lists, makes, joins and leaves rooms, and `settings` changes them; `messages` and
`calls` are the tools of models in a room, `history` has what programs read and post, whole and as
stored; `proposals` makes proposals and decides them, `rights` grants and revokes.
"""
