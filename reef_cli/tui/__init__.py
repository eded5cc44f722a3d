"""The dashboard: what `reef` opens on a terminal. Only what is below here imports Textual (half a second of import)."""
