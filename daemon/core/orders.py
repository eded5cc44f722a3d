"""The orders that the list of sessions can be asked for in. Apart from the rows: who only asks imports nothing else."""

from enum import StrEnum


class Order(StrEnum):
    """How a list of sessions may be sorted. Only sessions that have a value are in it."""

    ACTIVITY = "activity"  # by their last record
    TOKENS = "tokens"  # in and out, of all records
    COST = "cost"  # as far as it is known
    LATENCY = "latency"  # of one record, on average
    RATING = "rating"
