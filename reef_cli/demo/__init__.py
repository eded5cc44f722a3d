"""The demo: a scripted person, and the whole loop around a real model."""
