"""Checks on material that lies beside the repository on some machines."""
