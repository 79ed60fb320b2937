"""Pure: credentials as values. Grows with join."""
