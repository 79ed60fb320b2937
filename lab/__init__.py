"""A data centre in a box: real machines, networks and servers for the demo, tests and benches. Not packaged."""
