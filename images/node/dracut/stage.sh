#!/bin/sh
# start | mount ROOT | emergency: our stage in an initrd that dracut made (docs/dracut.md). dracut's modules bring up network and
# disks in between, and dracut switches; all else is done by the parts that our own initrd has.
# shellcheck disable=SC1090,SC2034,SC2154 # the parts below are read into this shell and use its variables
LIB=/usr/lib/netboot RUN=/run/netboot KEYS=/etc/netboot/keys BUSYBOX=/usr/lib/netboot/busybox KMSG=/dev/kmsg
SEALED_NONCE=/etc/netboot/nonce # a second initrd file of the boot script
export PATH=$LIB/bin:/usr/bin LC_ALL=C
if [ "$1" = start ]; then
  "$BUSYBOX" mkdir -p "$LIB/bin" "$RUN/events"
  "$BUSYBOX" --install -s "$LIB/bin"
fi
for part in words steps report arguments settings links units network trust crash console fetch watch memory mount watchdog; do . "$LIB/$part.sh"; done
CONSOLES=$(tr ' ' '\n' </sys/class/tty/console/active | sed '$d')

start() {
  mount -t tmpfs -o remount,nosuid,nodev,mode=0755,size=20% tmpfs /run # dracut's has noexec, and our units start /run/netboot/busybox
  cat /proc/sys/kernel/panic >"$RUN/panic"
  echo 10 >/proc/sys/kernel/panic # should dracut's init die
  say "stage started, in an initrd by dracut"
  take read_command_line load_all_modules arm_watchdog announce
}

load_all_modules() { # what dracut is told of bonds and VLANs may be in the image, not on the kernel's command line
  BOND=any VLAN=any load_modules
}

network_is_up() { # by what dracut has done; that it waits for a network its argument rd.neednet=1 says
  UPLINK=''
  for setup in /tmp/net.*.did-setup; do
    link=${setup#/tmp/net.} link=${link%.did-setup}
    [ -e "$NET/$link" ] || continue # dracut notes a card's address too
    if [ -z "$UPLINK" ] || [ "$(cat "$NET/$link/address")" = "$MAC" ]; then UPLINK=$link; fi
  done
  [ -n "$UPLINK" ] || because "no network: dracut has set up no link ($(describe))" || return 1
  [ -n "$MAC" ] || ! matches "$(cat "$NET/$UPLINK/address")" '[0-9a-f]{2}(:[0-9a-f]{2}){5}' || MAC=$(cat "$NET/$UPLINK/address")
  say "$UPLINK is up:$(ip -o addr show dev "$UPLINK" scope global | awk '{ printf " %s", $4 }')"
  grep -v '^#' /etc/resolv.conf >"$RUN/resolv.conf" 2>/dev/null
  leave_network
  deliver &
}

leave_network() { # a lease that systemd-networkd can renew, or a link that it leaves alone
  PORTS=$(cards_below "$UPLINK" | tr '\n' ' ') PORTS=${PORTS% }
  for bond in "$NET"/*/bonding; do
    [ ! -d "$bond" ] || { bond=${bond%/bonding} BOND=${bond##*/}; }
  done
  [ "$PORTS" = "$UPLINK" ] || CONFIGURED=yes
  METHOD=dhcp
  leave_units "$UPLINK"
  # dhclient's lease of an IPv4 address; what is static, IPv6's or InfiniBand's the kernel keeps
  if ! grep -q fixed-address "/tmp/dhclient.$UPLINK.lease" 2>/dev/null || [ "$(cat "$NET/$UPLINK/type")" != 1 ]; then
    unit "$units/10-netboot.network" Match "Name=$UPLINK" Link Unmanaged=yes
  fi
}

cards_below() { # LINK: what it is made of, or itself
  if [ -e "$NET/$1/device" ]; then
    echo "$1"
    return
  fi
  for lower in "$NET/$1"/lower_*; do [ ! -e "$lower" ] || cards_below "${lower##*/lower_}"; done
}

case $1 in
  start) start ;;
  mount)
    PANIC=$(cat "$RUN/panic")
    take read_command_line network_is_up watch_console establish_trust watch_console send_crashes
    take fetch_root verify_root look_again mount_root
    leave_initrd
    mount --move /new "$2"
    ;;
  emergency)
    say "dracut has given up, rebooting to ask the service anew what to boot; its last words are above"
    pause 10
    reboot -f
    ;;
esac
