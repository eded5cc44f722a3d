"""Dialects: bytes to words and back. Pure: no I/O, no clock, no randomness beyond ids handed in."""
