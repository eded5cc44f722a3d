"""The per-user daemon. Layers, top to bottom: server, (learning), engines | store | wire, core."""
