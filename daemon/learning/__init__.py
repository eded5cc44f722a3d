"""When a recipe runs, and what becomes of its candidate."""
