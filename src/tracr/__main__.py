"""The command `tracr`, also `python -m tracr`. Says so if another package replaced files of this one."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, `tracr.cli.main`."""
    try:
        from tracr.cli import main as command
    except ImportError as error:
        from tracr.installation import files_replaced

        if not files_replaced():
            raise
        sys.exit(f"tracr: {error}")
    command()


if __name__ == "__main__":
    main()
