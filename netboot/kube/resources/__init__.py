"""Custom resources `netboot.dev/v1alpha1`: definitions made from the models of the inventory, and its objects."""
