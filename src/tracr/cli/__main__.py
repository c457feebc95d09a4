"""`python -m tracr.cli` is `tracr`."""

from tracr.cli import main

if __name__ == "__main__":
    main()
