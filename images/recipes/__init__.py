"""Data: the recipes that are shipped."""
