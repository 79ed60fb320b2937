"""Join: a machine proves who it is gets one short-lived credential. Pure: clock, keys and ports are arguments."""
