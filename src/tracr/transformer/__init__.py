"""Import paths of the original Tracr, for existing code; the implementation is in `tracr.model`."""
