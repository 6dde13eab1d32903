"""The test suite; it mirrors `src/folkmoot`."""
