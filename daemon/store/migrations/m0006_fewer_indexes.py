"""Fewer indexes: each is a page more that every record writes, and few asked for these."""

from typing import Final

STATEMENTS: Final = (
    # Lists go by scenario, all of them together through each scenario's end; the main line that moved last is near it.
    "DROP INDEX session_updated",
    "DROP INDEX session_main",
    "DROP INDEX session_scenario_main",
    # Learning walks record_scenario.
    "DROP INDEX record_trains",
    # A message that only looks different is found in the request before it.
    "DROP INDEX message_key",
    # Only forgetting asks for these: once a purge it reads the table, and of requests only the sessions around.
    "DROP INDEX request_base",
    "DROP INDEX point_seq",
    "DROP INDEX answer_id_seq",
)
