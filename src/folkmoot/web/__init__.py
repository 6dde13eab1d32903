"""Pages for people. Each is one HTML document that asks for nothing further and needs no script.

`pages` fills the templates that lie beside it; everything it puts into one is escaped.
"""
