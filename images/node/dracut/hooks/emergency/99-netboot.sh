# shellcheck shell=sh # dracut's init reads this in before it would give a shell, whatever rd.shell and rd.break say
exec /usr/lib/netboot/busybox sh /usr/lib/netboot/dracut.sh emergency
