#!/bin/sh
# usage: ipxe-arm64.sh FOLDER [MIRROR]
# Put iPXE for arm64 into FOLDER, as ipxe-arm64.efi: that of Debian 13's package `ipxe`, for hosts whose own has none
# (docs/dhcp.md). MIRROR: of Debian, default http://deb.debian.org/debian. apt checks the archive's signature by the
# keys of the package debian-archive-keyring. What it is told here it is told for this once: this host's sources,
# preferences and packages stay as they are. A proxy of this host's apt is used.
set -eu

usage() { sed -n '2,6s/^# //p' "$0" >&2 && exit 2; }
[ $# = 1 ] || [ $# = 2 ] || usage
folder=$1 mirror=${2:-http://deb.debian.org/debian}
case $folder in '' | -*) usage ;; esac
case $mirror in *[!A-Za-z0-9.:/_~%-]*) usage ;; esac # a line of apt's, for one source
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keys" ] || { echo "ipxe-arm64.sh: no $keys: \`apt-get install debian-archive-keyring\`" >&2 && exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' HUP INT TERM
chmod 711 "$scratch" # as root, apt fetches by an account of its own
mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial"
: >"$scratch/status" # of no package
echo "deb [signed-by=$keys] $mirror trixie main" >"$scratch/sources.list"

apt() {
  apt-get -q -o Dir::Etc::SourceList="$scratch/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
    -o Dir::State::Status="$scratch/status" -o Dir::State::Lists="$scratch/lists" -o Dir::Cache="$scratch/cache" \
    -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
    -o APT::Get::AllowUnauthenticated=false -o Acquire::AllowInsecureRepositories=false "$@" >&2
}
apt update --error-on=any
apt install --download-only --no-install-recommends --yes ipxe

mkdir -p "$folder"
for package in "$scratch"/cache/archives/ipxe_*.deb; do
  dpkg-deb --extract "$package" "$scratch/root"
  install -m 644 "$scratch/root/usr/lib/ipxe/ipxe-arm64.efi" "$folder/.ipxe-arm64.efi.new"
  mv "$folder/.ipxe-arm64.efi.new" "$folder/ipxe-arm64.efi"
  echo "$folder/ipxe-arm64.efi: of ipxe $(dpkg-deb --field "$package" Version)"
done
