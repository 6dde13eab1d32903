"""The documentation; `python -m docs.generate` writes the pages that come from the code."""
