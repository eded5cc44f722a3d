"""Everything that is kept: records, sessions, feedback. The only SQL in the project."""
