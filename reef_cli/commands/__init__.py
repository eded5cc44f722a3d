"""One file a noun. Each module offers `app`, a Typer application."""
