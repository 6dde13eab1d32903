"""`folkmoot names`: a project's names checked, written down and changed.

What is found and written is worked out in `folkmoot.names.lint` and `folkmoot.names.generate`; here
it is asked for and shown. Names may come from anyone's server, so all go through `cli.text`.
"""
