"""Certificates: hints for the independent checker `tracr_check`, and its verdicts."""
