#!/bin/bash
# dracut's module `netboot` (dracut.modules(7)): what our stage needs of programs. Its files and hooks the build adds afterwards.

check() { return 255; } # only where it is asked for

depends() { echo network; }

install() {
  inst_simple "$(command -v busybox)" /usr/lib/netboot/busybox
  inst_multiple signify-openbsd
  inst_multiple -o /usr/lib/systemd/network/99-default.link # without it cards are eth0, and ip=enp59s0f0:dhcp names none
  if dracut_module_included multipath; then inst_rules 60-multipath.rules; fi # Debian's name of it, which multipath passes over
}
