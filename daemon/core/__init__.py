"""What every layer shares: words, ids, errors, paths, configuration. Standard library only, no work at import."""
