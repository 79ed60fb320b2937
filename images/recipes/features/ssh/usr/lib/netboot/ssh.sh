#!/bin/sh
# Writes whose certificates let somebody in as root, and for which principals; makes this boot's host key.
# CAs and principals are those of the site bundle, whose signature the initrd has verified, and of the image's own files.
# The command line, which anybody on the wire may have written, only chooses among these principals.
run=${NETBOOT_RUN:-/run} conf=${NETBOOT_ETC:-/etc}/ssh
set -f # no word of the command line is a pattern for files
out=$run/netboot-ssh

say() { echo "netboot-ssh: $*"; }

of_site() { # KEY: the words of a list, one a line; the bundle is canonical JSON, so "key": can only be a key
  sed -n "s/.*\"$1\":\[\"\([^]]*\)\"\].*/\1/p" "$run/netboot/site.json" 2>/dev/null | sed 's/","/\n/g'
}

known() { # KEY FILE: of the site and of the image
  { of_site "$1" && cat "$conf/$2" 2>/dev/null; } | sed '/^ *\(#\|$\)/d'
}

mkdir -p "$out"
known ssh_authorities user-ca.pub >"$out/user-ca.pub"
known ssh_principals user-principals >"$out/known"
: >"$out/principals"
asked=$(tr ' ' '\n' <"${NETBOOT_CMDLINE:-/proc/cmdline}" | sed -n 's/^netboot\.ssh=//p' | tail -n 1 | tr -cd ' -~')
for principal in $(echo "$asked" | tr ',' ' '); do
  if grep -Fxq -e "$principal" "$out/known"; then
    echo "$principal" >>"$out/principals"
  else
    say "$principal is no principal of this site or image, and is left out"
  fi
done
if [ ! -s "$out/user-ca.pub" ] || [ ! -s "$out/principals" ]; then
  say "nobody could log in, so there is no ssh server: $(wc -l <"$out/user-ca.pub") authorities, $(wc -l <"$out/principals") principals"
  exit 1
fi
key=$out/ssh_host_ed25519_key
[ -e "$key" ] || ssh-keygen -q -t ed25519 -N '' -C '' -f "$key" || exit 1
said="ssh host key $(ssh-keygen -l -f "$key" | cut -d' ' -f2), principals $(tr '\n' ' ' <"$out/principals")"
say "${said% }"
echo "${said% }" >"$run/netboot/tell" # for the boot's trace, when it is up
