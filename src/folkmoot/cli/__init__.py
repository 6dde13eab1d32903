"""The `folkmoot` command."""


def main() -> None:
    """Run the command line."""
