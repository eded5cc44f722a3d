"""Supervised learning: a person's edits, accepted answers and notes become weights."""
