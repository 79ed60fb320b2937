"""Checks of a finished tree, one file each, pure: from facts to findings. `gather` reads the facts."""
