"""Everything that is kept: records, sessions, feedback, jobs and what they use up. The only SQL in the project."""
