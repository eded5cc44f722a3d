"""Harness working copies: a release's tree as plain files that a person edits, one folder a scenario."""
