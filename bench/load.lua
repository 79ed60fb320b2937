-- wrk's side of the bench: walks a prepared list of paths; prints one line of JSON at the end.
-- Arguments after "--": a file of paths, and "close" for a new connection per request.
local requests, count, at = {}, 0, 0

function init(args)
  if args[2] == "close" then wrk.headers["Connection"] = "close" end
  for path in io.lines(args[1]) do
    count = count + 1
    requests[count] = wrk.format("GET", path)
  end
end

function request()
  at = at % count + 1
  return requests[at]
end

function done(summary, latency, _)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests": %d, "duration_us": %d, "bytes": %d, "p50_us": %d, "p99_us": %d, ' ..
    '"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}\n',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
    e.connect, e.read, e.write, e.status, e.timeout))
end
