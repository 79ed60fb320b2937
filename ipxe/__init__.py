"""Pure: boot scripts as values: what firmware is told, how arguments are quoted, what is refused."""
