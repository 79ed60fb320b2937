"""`make demo`, in steps: what it makes, what it says meanwhile, its summary."""
