#!/bin/sh
# usage: hosts.sh [debian-12|ubuntu-24.04]… [-- COMMAND…]
# Try what README says of hosts: in an empty root of each, an ordinary user with sudo clones this tree, as it is committed,
# and runs COMMAND there (`make check`, which runs ./setup.sh first). As root, with the network of this host; half an
# hour each, and 8 GiB. The roots are in memory where there is enough, and go with this script, whatever ends it.
set -eu
tree=$(cd "$(dirname "$0")/.." && pwd)
sources() { # of each host: what apt is told, one line each
  case $1 in
    debian-12)
      key=/usr/share/keyrings/debian-archive-keyring.gpg
      for suite in bookworm bookworm-updates; do echo "deb [signed-by=$key] http://deb.debian.org/debian $suite main"; done ;;
    ubuntu-24.04)
      key=$tree/images/recipes/keys/ubuntu-archive-2018.asc
      for suite in noble noble-updates; do echo "deb [signed-by=$key] http://archive.ubuntu.com/ubuntu $suite main universe"; done ;;
    *) echo "hosts.sh: $1 is none of debian-12, ubuntu-24.04" >&2 && return 2 ;;
  esac
}
suite() { case $1 in debian-12) echo bookworm ;; *) echo noble ;; esac; }
keyring() { case $1 in debian-12) echo debian-archive-keyring ;; *) echo ubuntu-keyring ;; esac; }

if [ "${1:-}" = --alone ]; then # HOST COMMAND…: in namespaces of its own, which end with it
  host=$2 && shift 2
  root=$(mktemp -d "${TMPDIR:-/tmp}/netboot-$host.XXXXXX")
  trap 'umount -R "$root" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT
  gib=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
  [ "$gib" -lt 16 ] || mount -t tmpfs -o mode=755,size=75% tmpfs "$root"
  chmod 755 "$root"
  packages=apt,$(keyring "$host"),ca-certificates,git,make,python3,sudo
  sources "$host" | mmdebstrap --quiet --variant=minbase --include="$packages" "$(suite "$host")" "$root" -
  sources "$host" | sed 's/ \[signed-by=[^]]*\]//' >"$root/etc/apt/sources.list"
  chroot "$root" useradd --create-home --shell /bin/bash alice
  echo 'alice ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/alice"
  for file in /etc/resolv.conf /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
    if [ -e "$file" ]; then cat "$file" >"$root$file"; fi
  done
  hostname "$host" && echo "127.0.0.1 localhost $host" >"$root/etc/hosts"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  git clone -q --no-local "$tree" "$root/home/alice/netboot"
  chroot "$root" chown -R alice:alice /home/alice/netboot
  # As the user, with what this host knows of authorities of TLS.
  env -i HOME=/home/alice USER=alice LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
    chroot --userspec=alice:alice "$root" /bin/sh -c 'cd /home/alice/netboot && exec "$@"' sh "$@"
  exit
fi

hosts=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  sources "$1" >/dev/null
  hosts="$hosts $1" && shift
done
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- make check
failed=0
for host in ${hosts:-debian-12 ubuntu-24.04}; do
  printf '\033[1m==> %s: %s\033[0m\n' "$host" "$*"
  if [ "$host" = ubuntu-24.04 ] && ! curl -fsS -m 30 -o /dev/null http://archive.ubuntu.com/ubuntu/dists/noble/InRelease; then
    printf '\033[31m%s NOT TRIED: its mirror does not answer\033[0m\n' "$host"
  elif unshare --mount --pid --ipc --uts --fork --kill-child -- "$0" --alone "$host" "$@"; then
    echo "==> $host: $* ended well"
  else
    failed=1
    echo "==> $host: $* failed" >&2
  fi
done
exit "$failed"
