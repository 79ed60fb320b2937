"""What this machine says of its health on its own Node, under the kubelet's certificate: docs/gate.md."""
