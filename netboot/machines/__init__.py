"""Pure: what the operator declares (machines, profiles, channels) and which of them a claim means."""
