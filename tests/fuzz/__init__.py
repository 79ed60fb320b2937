"""Fuzzing of every parser that reads what a stranger sent: `make fuzz SECONDS=300`; docs/fuzzing.md."""
