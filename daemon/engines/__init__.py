"""Where tokens come from. `base` holds the two seams; each other module is one engine."""
