"""Names that existing code imports from here; what they name is in `tracr.model`."""
