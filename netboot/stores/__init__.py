"""Adapters that keep things on disk: the journal of a process, the state, the published snapshot."""
