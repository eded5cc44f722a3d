"""The daemon's front: sockets, checks, the data plane and the control plane."""
