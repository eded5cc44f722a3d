"""How one coding agent is installed, pointed at Reef and wrapped."""
