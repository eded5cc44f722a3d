"""What stands in for what is not on this machine, and behaves like it."""
