"""What a machine that nobody has declared tells the service of itself: docs/discovery.md."""
