"""Loops beside the planes: the inventory keeper and the journal projector."""
