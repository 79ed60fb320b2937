"""DHCP: what servers have to be told about us, as values and texts; and what they tell, asked as firmware asks."""
