# shellcheck shell=sh
# FILE CHUNK-SIZE [NUMBER DIGEST]...: print the numbers of the chunks that have their digest.
file=$1 chunk=$2
shift 2
while [ $# -ge 2 ]; do
  sum=$(dd if="$file" bs="$chunk" skip="$1" count=1 2>/dev/null | sha256sum)
  [ "${sum%% *}" != "$2" ] || echo "$1"
  shift 2
done
