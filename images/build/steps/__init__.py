"""Build steps, one per file, named after the tool they drive."""
