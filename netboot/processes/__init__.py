"""Puts the parts together: what `netboot serve` starts (`service`), and what each of its processes is made of."""
