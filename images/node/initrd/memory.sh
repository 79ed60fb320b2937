# shellcheck shell=sh
# How a machine's memory is divided, MiB: one rule for the initrd (the overlay's size), for netboot-memory.service in the
# root (what containerd and the kubelet get) and for the build's gate *memory*. docs/recipes.md#memory says why.

memory_budget() { # MEMORY ROOT CONTAINERS STATE [STORE]: NAME=MIB of each part; all but RESERVED add up to MEMORY
  # MEMORY: the kernel's MemTotal. ROOT: the packed root image. CONTAINERS: container images that the root brings.
  # STATE: where containerd's and the kubelet's state is: memory, disk, or none (nothing joins a cluster).
  # STORE: what a profile says containerd's state may have, in place of the rule's.
  image=$(($2 + 16)) system=$((256 + $(between 0 $(($1 / 64)) 4096)))
  eviction=$(between 100 $(($1 / 50)) 4096) store=0 kubelet=0
  [ "$4" != none ] || eviction=0
  rest=$(($1 - image - system - eviction - $3))
  if [ "$4" = none ]; then overlay=$(between 64 $((rest / 2)) "$1"); else overlay=$(between 128 $((rest / 8)) 16384); fi
  if [ "$4" = memory ]; then
    store=${5:-$(($3 + $(between 64 $((rest / 4)) 131072)))} kubelet=$(between 32 $((rest / 16)) 32768)
  fi
  left=$(($1 - image - system - eviction - overlay - store - kubelet))
  printf 'IMAGE=%d\nSYSTEM=%d\nOVERLAY=%d\nSTORE=%d\nKUBELET=%d\nEVICTION=%d\nLEFT=%d\n' \
    "$image" "$system" "$overlay" "$store" "$kubelet" "$eviction" "$left"
  # A kubelet that is to reserve more than there is does not start: an eighth is for Pods, however small the machine is
  echo "RESERVED=$(between 0 $(($1 - eviction - left)) $(($1 - eviction - $1 / 8)))"
}

between() { # LEAST NUMBER MOST
  if [ "$2" -gt "$3" ]; then echo "$3"; elif [ "$2" -lt "$1" ]; then echo "$1"; else echo "$2"; fi
}

container_images() { # MANIFEST: MiB of all its container images, in containerd's state
  sed -n 's/.*"container_images":\[\([^]]*\)\].*/\1/p' "$1" | sed 's/[,}]/\n/g' |
    awk -F: '$1 == "\"size\"" { bytes += $2 } END { print int((bytes + 1048575) / 1048576) }'
}

divide_memory() { # leave the facts for the root; OVERLAY: how large what is written over the root may become
  state=none
  [ ! -d "$RUN/lower/usr/lib/netboot/node" ] || state=memory
  # Huge pages of the command line are nobody's to divide; the kubelet takes them off what Pods get by itself
  memory=$(awk '/^MemTotal:/ { all = $2 } /^Hugetlb:/ { all -= $2 } END { print int(all / 1024) }' "${MEMINFO:-/proc/meminfo}")
  facts="$memory $(((SIZE + 1048575) >> 20)) $(container_images "$RUN/manifest.json")"
  echo "$facts" >"$RUN/memory"
  # shellcheck disable=SC2086 # words
  eval "$(memory_budget $facts "$state" | grep OVERLAY=)"
}
