# shellcheck shell=sh disable=SC2034,SC2154 # variables in capitals are shared by the parts
# The site bundle and the manifest: fetched from anywhere, believed only with a signature by a key that was baked in.
# Both are canonical JSON (images.artifact.manifest.canonical), in which `"key":` can only be a key: sed reads it.

establish_trust() {
  REFUSED='' UNREACHED=''
  for origin in $(each_once "$REPORT" "$ORIGINS"); do bundle_from "$origin" && break; done
  [ -s "$RUN/bundle.json" ] || refused_or_unreached "site bundle" || return 1
  minimum=$(number minimum_epoch "$RUN/bundle.json")
  site=$(bundle_origins "$RUN/bundle.json")
  REPORT=$(bundle_report "$RUN/bundle.json")
  for origin in $REPORT $site; do
    is_url "$origin" || because "ImageRefused: the site bundle names an origin that is no plain URL: $origin" || return 1
  done
  REPORT=${REPORT%/}
  # shellcheck disable=SC2086 # words
  arrange_origins $site
  # shellcheck disable=SC2086 # words
  [ -n "$(without_tls $site)" ] || because "ImageRefused: the site bundle names no origin with plain HTTP" || return 1

  not_revoked "$RUN/bundle.json" || return 1
  REFUSED='' UNREACHED=''
  for origin in $(each_once "$REPORT" "$ORIGINS"); do manifest_from "$origin" && break; done
  [ -s "$RUN/manifest.json" ] || refused_or_unreached "manifest of image $IMAGE" || return 1
  epoch=$(number epoch "$RUN/manifest.json")
  # A number that the shell cannot compare fails here too, and refuses.
  [ "$epoch" -ge "$minimum" ] ||
    because "ImageRefused: its epoch $epoch is below this site's minimum, $minimum; build it anew" || return 1
  root_of_manifest "$RUN/manifest.json"
  [ "$COUNT" -gt 0 ] && [ "$COUNT" -eq $(((SIZE + CHUNK - 1) / CHUNK)) ] ||
    because "ImageRefused: the manifest has $COUNT chunk digests for $SIZE bytes" || return 1
  say "image $IMAGE is signed by a trusted key, epoch $epoch (minimum $minimum)"
}

look_again() { # the root image took its time: a newer bundle, if it is to be had at once, may have revoked it meanwhile
  (
    small() { timeout 5 "$BUSYBOX" wget -q -O "$2" "$1" 2>/dev/null; }
    signed_document "$REPORT/v1/site/bundle" "$RUN/newer"
  )
  [ -s "$RUN/newer.json" ] && [ "$(number issued "$RUN/newer.json")" -gt "$(number issued "$RUN/bundle.json")" ] || return 0
  not_revoked "$RUN/newer.json"
}

not_revoked() { # BUNDLE: a list that cannot be read refuses too
  grep -q '"images_revoked":' "$1" || return 0
  revoked=$(bundle_revoked "$1")
  case $revoked in '') because "ImageRefused: the site bundle revokes images in a way that this initrd cannot read" || return 1 ;; esac
  ! echo "$revoked" | grep -qxF "$IMAGE" || because "ImageRefused: image $IMAGE is revoked at this site"
}

arrange_origins() { # SITE'S ORIGINS: sets ORIGINS, the most preferred first, and PREFERRED, how many of them are preferred alike
  # The command line has a group a line: the rack's, the class's, the site's. The bundle's that it lacks come after them.
  # shellcheck disable=SC2086 # words
  service=$(each_once $GROUPED "$@" | grep -xF "$REPORT") ORIGINS='' PREFERRED=''
  for group in $GROUPED "$(echo "$*" | tr ' ' ',')"; do
    # shellcheck disable=SC2086 # words
    alike=$(each_once "$group" | grep '^http:' | grep -vxF "$(printf '%s\n' "$REPORT" $ORIGINS)")
    [ -n "$alike" ] || continue
    alike=$(echo "$alike" | shuffled)
    PREFERRED=${PREFERRED:-$(echo "$alike" | wc -l)}
    ORIGINS="$ORIGINS$(echo "$alike" | tr '\n' ' ')"
  done
  ORIGINS="$ORIGINS$service" PREFERRED=${PREFERRED:-1} # the service itself comes last: all machines have it
  ORIGINS=${ORIGINS% }
}

shuffled() { # lines; each machine in an order of its own, at each boot another
  awk -v seed="$(od -An -N4 -tu4 /dev/urandom)" 'BEGIN {srand(seed)} {print rand(), $0}' | sort -n | cut -d' ' -f2
}

each_once() { # URLS...: one a line, in order, without a slash at the end
  printf '%s\n' "$@" | awk -F '[ ,]' '{ for (i = 1; i <= NF; i++) { sub("/$", "", $i); if ($i != "" && !seen[$i]++) print $i } }'
}

bundle_from() { # ORIGIN
  signed_document "$1/v1/site/bundle" "$RUN/bundle"
}

manifest_from() { # ORIGIN
  signed_document "$1/v1/images/$IMAGE/manifest" "$RUN/manifest" || return 1
  sum=$(sha256sum <"$RUN/manifest.json")
  [ "${sum%% *}" = "$IMAGE" ] && return 0
  rm -f "$RUN/manifest.json"
  refuse "the manifest from $1 is not the one that was asked for (sha256 ${sum%% *})"
}

signed_document() { # URL FILE, both without their ends .json and .sig
  rm -f "$2.json" "$2.sig" "$2".sig.*
  small "$1.json" "$2.new" && small "$1.sig" "$2.sig" || return 1
  # Several keys may have signed, two lines each (images.artifact.signing.MOST); signify reads the first of a file.
  awk -v name="$2.sig." 'NR > 16 { exit } { print >(name int((NR + 1) / 2)) }' "$2.sig"
  for signature in "$2".sig.*; do
    for key in "$KEYS"/*.pub; do
      if signify-openbsd -V -q -p "$key" -x "$signature" -m "$2.new" >/dev/null 2>&1; then
        mv "$2.new" "$2.json"
        return 0
      fi
    done
  done
  rm -f "$2.new"
  refuse "$1.json is not signed by a key that this machine trusts"
}

small() { # URL FILE: at most 8 MiB, in 20 seconds, tried twice; a server that says when to come back is no failed try
  tries=0 waited=0
  while :; do
    error=$(ulimit -f 16384 && timeout 20 "$BUSYBOX" wget -q -O "$2" "$1" 2>&1) && return 0
    seconds=$(seconds_busy "$1")
    if [ -n "$seconds" ] && [ "$waited" -lt "$MOST_WAITING" ]; then
      waited=$((waited + seconds))
      say "$1: ${error#wget: server returned error: }, asking again in $seconds seconds or a little more"
      pause $((seconds * 2))
      continue
    fi
    tries=$((tries + 1))
    [ "$tries" -lt 2 ] || break
    pause 1
  done
  UNREACHED="$UNREACHED $1: ${error:-no answer in time};"
  say "cannot fetch $1: ${error:-no answer in time}"
  return 1
}

seconds_busy() { # URL: how long its server wants us to wait, if `error` is the answer of a busy one
  case $error in *'HTTP/1.'?' 503'* | *'HTTP/1.'?' 429'*) ;; *) return 1 ;; esac
  split_url "$1"
  timeout 20 "$BUSYBOX" nc -w 10 "$host" "$port" -e "$BUSYBOX" sh "$LIB/busy.sh" "$LIB" "$authority" "$path" 2>&1 | grep -Ex '[0-9]+'
}

refuse() {
  say "$*"
  REFUSED="$REFUSED $*;"
  return 1
}

refused_or_unreached() { # WHAT: refused wins, because somebody answered with something that must not be believed
  [ -z "$REFUSED" ] || because "ImageRefused:$REFUSED" || return 1
  because "cannot fetch the $1:$UNREACHED"
}

number() { # KEY FILE
  sed -n 's/.*"'"$1"'":\([0-9]*\)[,}].*/\1/p' "$2"
}

bundle_origins() { # FILE: one a line; the key after `origins` is `report`
  sed -n 's/.*"origins":\["\(.*\)"\],"report":".*/\1/p' "$1" | sed 's/","/\n/g'
}

bundle_revoked() { # FILE: one a line; nothing if what it says is no list of digests in ascending order
  sed -n 's/.*"images_revoked":\["\([0-9a-f",]*\)"\],"issued":.*/\1/p' "$1" | sed 's/","/\n/g' |
    awk '!/^[0-9a-f]+$/ || length != 64 || $0 "" <= last "" { bad = 1 } { last = $0; all = all $0 "\n" } END { if (!bad) printf "%s", all }'
}

bundle_report() { # FILE
  sed -n 's/.*"report":"\([^"]*\)","schema":.*/\1/p' "$1"
}

root_of_manifest() { # FILE: sets SIZE, ROOT (its blob), FORMAT, CHUNK and COUNT; writes lines of "number digest" beside the file
  root=$(sed -n 's/.*"root":{\("chunks":\[[^]]*\],"sha256":"[^"]*","size":[0-9]*\)}.*/\1/p' "$1")
  SIZE=${root##*:}
  ROOT=${root##*'"sha256":"'}
  ROOT=${ROOT%%'"'*}
  FORMAT=$(sed -n 's/.*"root_format":"\([a-z0-9]*\)".*/\1/p' "$1") # absent: what images had before there was a choice
  FORMAT=${FORMAT:-squashfs}
  CHUNK=$(number chunk_size "$1")
  COUNT=$(echo "$root" | awk -F '"' -v out="$1.chunks" '
    BEGIN { printf "" >out }
    $3 == ":[" { for (at = 4; !n || $(at - 1) == ","; at += 2) print n++, $at >out }
    END { print n + 0 }')
}
