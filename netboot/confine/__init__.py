"""What each process of the service may touch, declared in `access`, enforced by the kernel (docs/decisions/029)."""
