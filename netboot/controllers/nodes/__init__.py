"""The node collector: when a machine's Node registered and became Ready, as the cluster says; it only reads."""
