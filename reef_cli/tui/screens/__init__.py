"""The dashboard's screens: a list for each noun, and what opens from its rows."""
