"""Loops beside the planes: the inventory publisher and the journal projection."""
