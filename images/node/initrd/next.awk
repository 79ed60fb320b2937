# What SLOT brings next from its ORIGIN: "FIRST LAST"; "FIRST LAST SLOT NEWLAST": the end of another slot's run, which is to end at
# NEWLAST; "FIRST again": one that another origin is slow with; "wait"; nothing: all are good, or this origin can be of no more use.
# Input: good, damaged, claimed, alive.*, as fetch.sh has them. `now`: seconds of any clock.
# Runs become shorter towards the end, and longer for who is quick, so that all end at the same time, and are seldom cut: what a
# connection that is ended has on its way is lost.
FILENAME ~ /\/good$/ { if (!($1 in good)) brought[$2]++; good[$1] = 1 }
FILENAME ~ /\/damaged$/ { damaged[$1, $2]++ }
$1 == "claim" { for (chunk = $2; chunk <= $3; chunk++) owner[chunk] = $4; latest[$4] = $3 - $2 + 1 }
$1 == "free" { for (chunk in owner) if (owner[chunk] == $2) delete owner[chunk] }
$1 == "again" { again[$2] = 1 }
$1 == "alive" { origin_of[$2] = $3; slots++ }
END {
  for (chunk = 0; chunk < count; chunk++) {
    if (chunk in good) continue
    waits = waits || others(chunk)
    if (chunk in owner) {
      if (owner[chunk] in current) rest[owner[chunk]]++; else current[owner[chunk]] = chunk
      end[owner[chunk]] = chunk
    } else if (allowed(chunk)) {
      free++
      if (first == "") first = chunk
      if (chunk == first + run) run++
    }
  }
  if (free) {
    size = share()
    print first, first + (size < run ? size : run) - 1
    exit
  }
  for (other in current) {
    if (other == slot || damaged[current[other], origin]) continue
    seconds = (rest[other] + 1) / rate(origin_of[other])
    if ((rest[other] || !(current[other] in again) && origin_of[other] != origin) && seconds > longest) {
      longest = seconds
      slowest = other
    }
  }
  if (slowest == "") { if (waits) print "wait" }
  else if (!rest[slowest]) print current[slowest], "again"
  else {
    size = int((rest[slowest] + 1) * rate(origin) / (rate(origin) + rate(origin_of[slowest])))
    size = size < 1 ? 1 : size > rest[slowest] ? rest[slowest] : size
    print end[slowest] - size + 1, end[slowest], slowest, end[slowest] - size
  }
}
function share(   other, sum, size) { # of what nobody has begun: half of what is this origin's by its speed; all, if it is alone
  if (slots < 2) return count + 0 # a number: busybox hands on the text of -v
  for (other in origin_of) sum += rate(origin_of[other])
  size = int(free * rate(origin) / sum / 2)
  if (size > 3 * latest[slot]) size = latest[slot] ? 3 * latest[slot] : size > 4 ? 4 : size
  return size < 1 ? 1 : size
}
function rate(of) { return brought[of] + 0.5 } # all have had the same time
function allowed(chunk,   other) { # what this origin sent damaged is asked of it once more, when all the others have done so too
  if (!damaged[chunk, origin]) return 1
  if (damaged[chunk, origin] > 1) return 0
  for (other in origin_of) if (!damaged[chunk, origin_of[other]]) return 0
  return 1
}
function others(chunk,   other) { # whether one of them may still bring it
  for (other in origin_of) if (other != slot && damaged[chunk, origin_of[other]] < 2) return 1
}
