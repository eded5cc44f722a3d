"""The command line: prints, asks, draws. It owns no facts; it asks the daemon over the socket."""
