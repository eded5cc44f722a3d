"""Pages of sessions as the daemon makes them, for rows by the thousand: a word of the title for a query, a sorting by
tokens, short pages where little fits.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Session = Mapping[str, Any]


def page(sessions: Sequence[Session], query: Mapping[str, str], looked_at: int) -> dict[str, Any]:
    """``sessions`` are the oldest first; at most ``looked_at`` of them are looked at for a page of those that fit."""
    words, limit = query.get("q", "").rstrip("*").lower().split(), int(query.get("limit", 50))
    rows = sessions
    if "ids" in query:
        named = query["ids"].split(",")
        return {"items": [one for one in sessions if one["id"] in named], "next": None, "total": None}
    if query.get("sort") == "tokens":
        rows = sorted(
            ({**one, "seq": one["prompt_tokens"] * 10**7 + one["seq"]} for one in rows), key=lambda r: r["seq"]
        )
    counted = not words and "sort" not in query
    if "after" in query:
        rows = [row for row in rows if row["seq"] > int(query["after"])]
    else:
        rows = [row for row in rows if "before" not in query or row["seq"] < int(query["before"])][::-1]
    seen = rows[:looked_at] if words else rows
    fit = [row for row in seen if all(word in row["title"].lower() for word in words)]
    items = fit[:limit]
    last = items if len(fit) > limit else seen if len(seen) < len(rows) else ()
    cursor = str(last[-1]["seq"]) if last else None
    whole = cursor is None and not {"before", "after"} & query.keys()
    return {"items": items, "next": cursor, "total": len(sessions) if counted else len(items) if whole else None}
