#!/bin/sh
# usage: in_memory.sh COMMAND…
# Run a command for which /tmp is in memory, and its own: tests make and remove a great many small files, each of which
# costs a disk's file system some of the processor's time (docs/decisions/224). What a command that fails leaves there is
# copied to .work/failed. Where there is little memory, or a Linux whose tmpfs has neither O_DIRECT nor attributes of
# users (before 6.6), the command has the /tmp that there is.
set -eu
if [ "$1" != --mounted ]; then
  gib=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
  older=$(printf '6.6\n%s\n' "$(uname -r)" | sort -V | head -n 1)
  if [ "$gib" -lt 16 ] || [ "$older" != 6.6 ]; then exec "$@"; fi
  exec unshare --mount -- "$0" --mounted "$@"
fi
shift
mount -t tmpfs -o mode=1777,size=50% tmpfs /tmp
trap : INT # of a terminal, which tells the command too: wait until it has ended
status=0
setpriv --pdeathsig TERM -- "$@" || status=$? # whoever ends this shell ends the command
if [ "$status" != 0 ] && [ -n "$(ls -A /tmp)" ]; then
  rm -rf .work/failed
  mkdir -p .work
  cp -a /tmp .work/failed
  echo "what was left in /tmp is in .work/failed" >&2
fi
exit "$status"
