#!/bin/sh
# Sends the journal where the site bundle says, whose signature the initrd has verified, and believes by the bundle's
# authorities who is there. A site that names nobody has no upload.
run=${NETBOOT_RUN:-/run}
site=$run/netboot/site.json authorities=$run/netboot-journal/authorities.pem

url=$(sed -n 's/.*"journal_url":"\([^"]*\)".*/\1/p' "$site") # canonical JSON: "key": can only be a key
if [ -z "$url" ]; then
  echo "the site names nobody who takes the journal; it stays here, in memory"
  exit 0
fi
# --key=-: this machine has no certificate to show
set -- --url="$url" --key=- --cert=- --save-state="${STATE_DIRECTORY:-/var/lib/netboot-journal}/state"
if [ "${url#https:}" != "$url" ]; then
  sed -n 's/.*"journal_authorities":\["\([^]]*\)"\].*/\1/p' "$site" | sed 's/","/\n/g; s/\\n/\n/g' >"$authorities"
  set -- "$@" --trust="$authorities"
fi
echo "the journal goes to $url"
exec "${NETBOOT_UPLOAD:-/usr/lib/systemd/systemd-journal-upload}" "$@"
