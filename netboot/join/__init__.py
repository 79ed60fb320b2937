"""Join: a machine proves who it is and gets one short-lived credential. Pure: clock, keys and the outside are arguments."""
