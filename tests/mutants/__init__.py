"""Mutants: one line of the product changed at a time, and the tests that have to fail for it (`make mutants`)."""
