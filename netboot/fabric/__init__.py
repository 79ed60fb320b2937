"""Pairwise tests of a network: who meets whom in which round, what was measured, who is slow with whom. Pure."""
