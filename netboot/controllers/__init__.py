"""Loops, in processes of their own: publisher, projection, approver, node collector, fetcher."""
