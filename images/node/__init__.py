"""What goes into an image and runs on the machine."""
