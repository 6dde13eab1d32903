"""Tests that go through the whole, and the manifest of what must be proved."""
