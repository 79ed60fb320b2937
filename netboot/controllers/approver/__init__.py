"""The approver: decides about the kubelets' certificate requests of one cluster.

Its account can make any node, so it is the smallest process: of the wire it sees the requests alone.
"""
