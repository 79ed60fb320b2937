# shellcheck shell=sh disable=SC1091,SC2094,SC2153,SC2154 # what `ask` and the environment set
# SLOT ORIGIN AUTHORITY PATH FIRST LAST: chunks of the root image by one request, with the connection as stdin and stdout. Each is
# claimed before it is read, and written into the image only when it has its digest: so this may be killed at any time.
# LIB, FETCH, FILE, LIST, SIZE, CHUNK and ALONE are in the environment. What became of it: $FETCH/outcome.SLOT.
. "$LIB/http.sh"
slot=$1 origin=$2 chunk=$5 last=$6

end() {
  echo "$*" >"$FETCH/outcome.$slot"
  exit
}

keep() { # CHUNK PART: into the image, if it has its digest
  if [ "$(sha256sum <"$2")" != "$(sed -n "s/^$1 //p" "$LIST")  -" ]; then
    rm -f "$2"
    echo "$1 $origin" >>"$FETCH/damaged"
    end "damaged $1"
  fi
  dd if="$2" of="$FILE" bs="$CHUNK" seek="$1" conv=notrunc 2>/dev/null || end "chunk $1 cannot be written"
  echo "$1 $slot $origin" >>"$FETCH/good"
  rm -f "$2"
}

part=$FETCH/part.$slot.$chunk have=0
[ ! -e "$part" ] || have=$(stat -c %s "$part") # what came before the connection ended
first=$((chunk * CHUNK + have)) end=$(((last + 1) * CHUNK))
final=$(((end < SIZE ? end : SIZE) - 1))
ask "$3" "$4" "$first" "$final"
[ -z "$wait" ] || end "busy $wait ${status#* }"
case "$status $range" in
  'HTTP/1.'?' 206 '*" bytes $first-$final/$SIZE") ;;
  'HTTP/1.'?' 206 '*) end "answers a part with: $status, $range" ;;
  'HTTP/1.'?' 200 '*) # it knows no parts
    [ "$length" = "$SIZE" ] || end "leave: has another file: ${length:-unknown} bytes, not $SIZE"
    [ "$first" = 0 ] || [ -n "$ALONE" ] || end "leave: sends no parts"
    dd of=/dev/null bs=65536 count="$first" iflag=fullblock,count_bytes 2>/dev/null
    ;;
  *) end "answers: ${status:-nothing}" ;;
esac
while :; do
  size=$((SIZE - chunk * CHUNK < CHUNK ? SIZE - chunk * CHUNK : CHUNK))
  dd bs=65536 count=$((size - have)) iflag=fullblock,count_bytes 2>/dev/null >>"$part"
  [ "$(stat -c %s "$part")" = "$size" ] || end "the connection ended in chunk $chunk"
  keep "$chunk" "$part"
  part=$FETCH/part.$slot.$((chunk + 1)) chunk=$((chunk + 1)) have=0
  if [ "$chunk" -gt "$last" ] || ! ln -s "$slot" "$FETCH/claims/$chunk" 2>/dev/null; then end "done"; fi
  echo "claim $chunk $slot" >>"$FETCH/claimed"
done
