# shellcheck shell=sh # dracut's init reads this in when its modules have brought up network and disks
/usr/lib/netboot/busybox sh /usr/lib/netboot/dracut.sh mount "$NEWROOT"
