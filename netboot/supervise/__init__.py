"""One supervisor: it starts processes, starts again what dies, stops them in order; knows nothing of their work."""
