"""The management listener: the operators' API, the page, health and metrics (Flask)."""
