# shellcheck shell=sh
# From a verified file to the root of systemd.

make_space() { # MIB for parts. A tmpfs of its own, sized: the image never competes with /run, and an origin cannot fill the memory
  [ ! -e "$RUN/image/root.img" ] || return 0
  # MiB: the image, tmpfs's own, a page for the digest of each chunk, chunks that are being fetched
  need=$(((SIZE >> 20) + 4 + (COUNT >> 8) + $1))
  free=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
  [ "$free" -gt $((need + 64)) ] ||
    because "not enough memory: the root image takes $need MiB, $free MiB are free" || return 1
  mkdir -p "$RUN/image"
  # interleave: else one NUMA node carries the whole image; kernels without NUMA refuse the option
  mount -t tmpfs -o "nosuid,nodev,mode=0700,size=${need}m,mpol=interleave" tmpfs "$RUN/image" 2>/dev/null ||
    mount -t tmpfs -o "nosuid,nodev,mode=0700,size=${need}m" tmpfs "$RUN/image" ||
    because "cannot mount a tmpfs of $need MiB" || return 1
  : >"$RUN/image/root.img"
}

mount_root() {
  mkdir -p "$RUN/lower" "$RUN/upper" /new
  mount_image || because "the kernel cannot mount the root image (are $FORMAT, its compression and loop there?)" || return 1
  divide_memory
  mount -t tmpfs -o "mode=0755,size=${OVERLAY}m" tmpfs "$RUN/upper" && mkdir "$RUN/upper/data" "$RUN/upper/work" &&
    mount -t overlay -o "lowerdir=$RUN/lower,upperdir=$RUN/upper/data,workdir=$RUN/upper/work" overlay /new ||
    { unmount && because "the kernel cannot mount the overlay"; } || return 1
  [ -L /new/sbin/init ] || [ -x /new/sbin/init ] || { unmount && because "the root image has no /sbin/init"; }
}

mount_image() {
  # percpu: Ubuntu's kernels decompress on one core otherwise; older kernels and other formats do not know the option
  [ "$FORMAT" != squashfs ] || ! mount -t squashfs -o ro,loop,threads=percpu "$FILE" "$RUN/lower" 2>/dev/null || return 0
  mount -t "$FORMAT" -o ro,loop "$FILE" "$RUN/lower"
}

unmount() {
  umount -l "$RUN/upper" 2>/dev/null
  umount -l "$RUN/lower" 2>/dev/null
  true
}

leave_facts() { # for the root: which boot this is, the site (verified), and the nonce of a boot window where there is one
  printf 'BOOT=%s\nIMAGE=%s\nREPORT=%s\nMAC=%s\nNAME=%s\n' "$BOOT" "$IMAGE" "$REPORT" "$MAC" "$NAME" >"$RUN/boot.env"
  cp "$RUN/bundle.json" "$RUN/site.json"
  [ ! -s "$SEALED_NONCE" ] || (umask 377 && cat "$SEALED_NONCE" >"$RUN/nonce")
}

end_jobs() { # whatever runs in the background
  for job in $(jobs -p); do kill "$job" 2>/dev/null; done
}

leave_initrd() { # what the root is to find, and what it is not
  disarm_watchdog
  mkdir -p /new/dev /new/proc /new/sys /new/run
  # The lease's name servers, unless the image has resolved, or its own idea of them
  [ -e /new/usr/lib/systemd/systemd-resolved ] || [ -L /new/etc/resolv.conf ] || [ -s /new/etc/resolv.conf ] ||
    cp "$RUN/resolv.conf" /new/etc/resolv.conf 2>/dev/null
  cp "$BUSYBOX" "$RUN/busybox"
  cp "$LIB/words.sh" "$LIB/report.sh" "$LIB/crash.sh" "$LIB/console.sh" "$LIB/memory.sh" "$RUN/"
  leave_facts
  drain 2 # what the service has not got by now, the root's first unit sends
  end_jobs
  say "switching to the root image"
  # Nobody but the overlay and the loop device needs these; systemd would try to unmount them at shutdown, and fail
  umount -l "$RUN/lower" && umount -l "$RUN/upper" && umount -l "$RUN/image"
  rm -rf "$RUN/delivering" "$RUN/delivering-crashes" "$RUN/crash.json" "$RUN/wget.log" "$RUN/console" "$RUN/console.json"
  echo "$PANIC" >/proc/sys/kernel/panic
}

switch() { # never pivot_root: on an initramfs it breaks container runtimes
  leave_initrd
  for place in dev proc sys run; do mount --move "/$place" "/new/$place"; done
  exec switch_root -c /dev/console /new /sbin/init
}
