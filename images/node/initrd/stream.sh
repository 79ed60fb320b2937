# shellcheck shell=sh disable=SC1091,SC2094,SC2153,SC2154 # what `ask` and the environment set
# SLOT ORIGIN AUTHORITY PATH FIRST LAST: a run of chunks of the root image by one request, with the connection as stdin and stdout. While
# the next one comes, a chunk is verified, and written into the image only when it has its digest: so this may be killed at any time.
# LIB, FETCH, FILE, SIZE, CHUNK, VERIFIERS and ALONE are in the environment. What became of it: $FETCH/outcome.SLOT.
. "$LIB/http.sh"
slot=$1 origin=$2 chunk=$5 last=$6 block=65536
outcome=$FETCH/outcome.$slot

end() { # WORDS, unless a verifier has found worse
  wait
  [ -s "$outcome" ] || echo "$*" >"$outcome"
  exit
}

verify() { # CHUNK PART: into the image, if it has its digest; what is empty takes no memory
  read -r digest <"$FETCH/digests/$1"
  sums=$FETCH/sum.${2##*/part.} sum=''
  ! sha256sum <"$2" >"$sums" || read -r sum <"$sums"
  if [ "$sum" != "$digest  -" ]; then
    echo "$1 $origin" >>"$FETCH/damaged"
    echo "damaged $1" >"$outcome"
  elif dd if="$2" of="$FILE" bs="$block" seek=$(($1 * (CHUNK / block))) conv=notrunc 2>/dev/null; then
    echo "$1 $origin $slot" >>"$FETCH/good"
  else
    echo "chunk $1 cannot be written" >"$outcome"
  fi
  : >"$2"
}

receive() { # BYTES FILE: at its end; 1 if the connection ended before. dd's first line says how many blocks came, whole+broken
  dd bs="$block" count="$1" iflag=fullblock,count_bytes 2>"$FETCH/blocks.$slot" >>"$2"
  read -r blocks _ <"$FETCH/blocks.$slot"
  [ "$blocks" = "$(($1 / block))+$(($1 % block > 0))" ]
}

part=$FETCH/part.$slot.$((chunk % (VERIFIERS + 1))) partial=$FETCH/partial.$slot.$chunk have=0
for old in "$FETCH/part.$slot".*; do [ ! -e "$old" ] || : >"$old"; done
if [ -s "$partial" ]; then # what came before a connection ended
  have=$(stat -c %s "$partial")
  mv "$partial" "$part"
fi
for old in "$FETCH/partial.$slot".*; do [ ! -e "$old" ] || rm "$old"; done
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
    receive "$first" /dev/null || end "the connection ended in chunk $chunk"
    ;;
  *) end "answers: ${status:-nothing}" ;;
esac
set --
while :; do
  size=$((SIZE - chunk * CHUNK < CHUNK ? SIZE - chunk * CHUNK : CHUNK))
  if ! receive $((size - have)) "$part"; then
    mv "$part" "$FETCH/partial.$slot.$chunk"
    end "the connection ended in chunk $chunk"
  fi
  verify "$chunk" "$part" &
  set -- "$@" $!
  if [ $# -gt "$VERIFIERS" ]; then
    wait "$1" # its part is the next one's
    shift
  fi
  chunk=$((chunk + 1)) have=0
  part=$FETCH/part.$slot.$((chunk % (VERIFIERS + 1)))
  [ ! -s "$outcome" ] || end
  read -r less <"$FETCH/last.$slot" && last=$less # another slot may have taken the end of the run
  [ "$chunk" -le "$last" ] || end "done"
done
