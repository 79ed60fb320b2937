"""Checks of a finished tree. `gather` reads the facts, once; the checks judge them."""
