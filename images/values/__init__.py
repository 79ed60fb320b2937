"""Strict values and what every room builds on: base types, digests, files that survive a crash, locks, findings."""
