"""One file for each process of `netboot serve`, which builds it; nothing is built elsewhere (docs/decisions/017).

`supervisor` is what the command starts; it starts the others, each through `start`. A process imports what it runs,
and nothing of the others.
"""
