#!/bin/sh
# Writes where systemd-journal-upload sends the journal, and by which authorities it believes who is there: as the site
# bundle says, whose signature the initrd has verified. A site that names nobody has no upload.
run=${NETBOOT_RUN:-/run}
site=$run/netboot/site.json out=$run/netboot-journal

url=$(sed -n 's/.*"journal_url":"\([^"]*\)".*/\1/p' "$site" 2>/dev/null) # canonical JSON: "key": can only be a key
if [ -z "$url" ]; then
  rm -f "$out/upload"
  echo "netboot-journal: the site names nobody who takes the journal; it stays here, in memory"
  exit 0
fi
mkdir -p "$out"
trust=
if [ "${url#https:}" != "$url" ]; then
  sed -n 's/.*"journal_authorities":\["\([^]]*\)"\].*/\1/p' "$site" | sed 's/","/\n/g; s/\\n/\n/g' >"$out/authorities.pem"
  trust=" --trust=$out/authorities.pem"
fi
# --key=-: this machine has no certificate to show
echo "UPLOAD='--url=$url --key=- --cert=-$trust'" >"$out/upload"
echo "netboot-journal: the journal goes to $url"
