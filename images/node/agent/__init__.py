"""The join agent: runs on each machine, from its attested TPM to the kubelet's files. docs/join.md is its contract."""
