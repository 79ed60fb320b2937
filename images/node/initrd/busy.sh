# shellcheck shell=sh
# LIB AUTHORITY PATH: how many seconds a busy server wants us to wait, on stderr (stdout is the connection); nothing if it is not.
# shellcheck disable=SC1091 # read in on the machine
. "$1/http.sh"
ask "$2" "$3"
[ -z "$wait" ] || echo "$wait" >&2
