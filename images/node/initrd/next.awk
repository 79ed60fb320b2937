# Which chunks SLOT asks its ORIGIN for next: "FIRST LAST"; "FIRST again": one that another origin is slow with; "wait"; nothing:
# all are good, or this origin can be of no more use. Input: good, damaged, claimed, alive.*, as fetch.sh has them.
# A free run behind a chunk that is on its way is divided: the other half is this slot's.
FILENAME ~ /\/good$/ { good[$1] = 1 }
FILENAME ~ /\/damaged$/ { damaged[$1, $2]++ }
$1 == "claim" { claim[$2] = $3 }
$1 == "free" { for (chunk in claim) if (claim[chunk] == $2) delete claim[chunk] }
$1 == "again" { again[$2] = 1 }
$1 == "alive" { origin_of[$2] = $3 }
END {
  for (chunk = 0; chunk < count; chunk++) {
    if (chunk in good) { run = 0; continue }
    if (chunk in claim) {
      run = 0
      waits = waits || others(chunk)
      if (origin_of[claim[chunk]] != origin && !(chunk in again) && !damaged[chunk, origin] && slow == "") slow = chunk
      continue
    }
    if (!allowed(chunk)) { run = 0; waits = waits || others(chunk); continue }
    run++
    if (run > longest) { longest = run; last = chunk }
  }
  first = last - longest + 1
  if (longest) {
    if (longest > 1 && (first - 1) in claim && !((first - 1) in good)) first += int(longest / 2)
    print first, last
  } else if (slow != "") print slow, "again"
  else if (waits) print "wait"
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
