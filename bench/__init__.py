"""Our own figures and the peers', side by side in one run."""
