"""What is tried from inside the service's processes, and what of it may succeed; by whichever way the service runs."""
