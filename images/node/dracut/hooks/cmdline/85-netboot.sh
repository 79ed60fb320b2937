# shellcheck shell=sh disable=SC2034 # dracut's init reads this in: before its own modules look at iSCSI and the network
/usr/lib/netboot/busybox sh /usr/lib/netboot/dracut.sh start
root=netboot rootok=1
