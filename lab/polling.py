"""How long whoever asks again and again waits between two questions, so that asking is not what all others wait for.

`netboot` costs half a second of a processor each time (decision 224). Asked again 20 ms after each answer it takes most
of one, and a machine that is emulated on the same two comes later to what is waited for.
"""

SHARE = 3.0
"""A pause lasts this many times what the question took: asking takes a quarter of a processor."""
MOST_SECONDS = 2.0


def pause_after(took: float, least: float) -> float:
    """Seconds to wait after a question that took `took` seconds; `least`: at any rate."""
    return max(least, min(SHARE * took, MOST_SECONDS))
