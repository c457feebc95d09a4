"""`python -m tracr_check FOLDER`."""

import sys

from tracr_check.command import main

if __name__ == "__main__":
    sys.exit(main())
