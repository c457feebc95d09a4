"""The library of programs (the path existing code imports); the programs are in `tracr.rasp.programs`."""

from tracr.rasp.programs import *  # noqa: F403
from tracr.rasp.programs import __all__ as __all__
