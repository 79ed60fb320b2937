# What SLOT brings next from its ORIGIN: "FIRST LAST"; "FIRST LAST SLOT NEWLAST": the end of another slot's run, which is to end at
# NEWLAST; "FIRST again": one that another origin is slow with; "wait"; nothing: all are good, or this origin can be of no more use.
# Input: good, damaged, claimed, alive.*, as fetch.sh has them. `seconds`: since the fetch began.
# Runs become shorter towards the end, and longer for who is quick, so that all end at the same time, and are seldom cut: what a
# connection that is ended has on its way is lost. The last chunks are not for who would take longest.
FILENAME ~ /\/good$/ { if (!($1 in good)) brought[$2]++; good[$1] = 1 }
FILENAME ~ /\/damaged$/ { damaged[$1, $2]++ }
$1 == "claim" { for (chunk = $2; chunk <= $3; chunk++) owner[chunk] = $4; latest[$4] = $3 - $2 + 1 }
$1 == "free" { for (chunk in owner) if (owner[chunk] == $2) delete owner[chunk] }
$1 == "again" { again[$2] = $3 }
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
    if (size) print first, first + (size < run ? size : run) - 1; else print "wait"
    exit
  }
  for (other in current) {
    if (other == slot || damaged[current[other], origin]) continue
    size = int((rest[other] + 1) * rate(origin) / (rate(origin) + rate(origin_of[other])))
    if (!size && !repeatable(current[other], other)) continue
    time = (rest[other] + 1) / rate(origin_of[other])
    if (time > longest) {
      longest = time
      slowest = other
      taken = size > rest[other] ? rest[other] : size
    }
  }
  if (slowest == "") { if (waits) print "wait" }
  else if (taken) print end[slowest] - taken + 1, end[slowest], slowest, end[slowest] - taken
  else print current[slowest], "again"
}
function share(   other, sum, size, least, better) { # of what nobody has begun: half of what is this origin's by its speed
  if (slots < 2) return count + 0 # a number: busybox hands on the text of -v
  for (other in origin_of) {
    sum += rate(origin_of[other])
    if (other in current) {
      left += rest[other] + 0.5
      better = better || rate(origin_of[other]) > rate(origin)
    }
  }
  # All will be there before its next chunk would be; of who has brought nothing yet nobody knows
  if (better && brought[origin] && (free + left) * rate(origin) < sum) return 0
  size = int(free * rate(origin) / sum / 2)
  if (size > 3 * latest[slot]) size = latest[slot] ? 3 * latest[slot] : size > 4 ? 4 : size
  least = int(brought[origin] / (seconds + 0.1) / 4) # what it brings in a quarter of a second: a request takes some time too
  return size < 1 && least < 1 ? 1 : size < least ? least : size
}
function rate(of) { return brought[of] + 0.5 } # all have had the same time
function repeatable(chunk, other) { # whether what `other` brings may be asked of this origin too
  if (rest[other] || origin_of[other] == origin) return 0
  return !(chunk in again) || rate(origin) > rate(origin_of[again[chunk]])
}
function allowed(chunk,   other) { # what this origin sent damaged is asked of it once more, when all the others have done so too
  if (!damaged[chunk, origin]) return 1
  if (damaged[chunk, origin] > 1) return 0
  for (other in origin_of) if (!damaged[chunk, origin_of[other]]) return 0
  return 1
}
function others(chunk,   other) { # whether one of them may still bring it
  for (other in origin_of) if (other != slot && damaged[chunk, origin_of[other]] < 2) return 1
}
