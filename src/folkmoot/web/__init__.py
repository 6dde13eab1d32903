"""HTML pages for people. Each is one document that loads nothing else and needs no script.

`pages` fills the templates in this folder; every value it inserts is escaped.
"""
