# shellcheck shell=sh
# HOST PATH OFFSET LENGTH FILE: one HTTP request for a part of a file, with the connection as stdin and stdout.
# busybox's wget refuses the answer to a Range header that is given by hand, so this is written by hand.
last=$(($3 + $4 - 1))
printf 'GET %s HTTP/1.1\r\nHost: %s\r\nRange: bytes=%d-%d\r\nConnection: close\r\n\r\n' "$2" "$1" "$3" "$last"
return_character=$(printf '\r')
status='' range='' lines=0
while IFS= read -r line && [ "$lines" -lt 100 ]; do
  line=${line%"$return_character"} lines=$((lines + 1))
  [ -n "$line" ] || break
  [ -n "$status" ] || status=$line
  case $line in
    [Cc]ontent-[Rr]ange:*) range=${line#*: } ;;
  esac
done
case "$status $range" in
  'HTTP/1.'?' 206 '*" bytes $3-$last/"*) head -c "$4" >"$5" ;;
  *) echo "answers a part with: $status" >&2 ;;
esac
