"""One module per page that takes something from the code.

A module has either `page()`, the text of a page that is made whole, or `BLOCKS`, the tables that
stand between marks in a page that people write.
"""
