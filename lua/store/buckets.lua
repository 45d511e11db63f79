-- buckets are the histograms of store/figures.lua. A value is counted in one bucket: the first whose bound is not
-- below the value, or "more" if the value is above all bounds. A bucket does not include the values of the buckets
-- below it. Programs read the bounds from the names of the fields, and add up the counts of several partitions. So a
-- later version can add a bound and must not remove one. inspect/figures.go has the same table; a test compares them.
--
--   duration               ms from started_at to completed_at
--   timed                  the same, of tasks that timed out
--   waiting                ms from the instant at which the task could be fetched to started_at
--   lag <timeout_type>     ms from the instant of a timeout (completed_at, if it ended a task) until it was written; of attempts
--                          also if another attempt followed, and of waits (synchronization)
--   woken <mode> <reason>  ms from the instant that decided the wait of an agent until the agent was in line
--   share                  thousandths of the time from created_at to deadline_at, rounded up, that had passed at completed_at
local buckets = {}

-- From 1 ms to a day. From 1 s on the bounds are round times, such as 30 s and 5 min.
local times = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 120000, 300000, 600000, 1800000,
  3600000, 7200000, 21600000, 43200000, 86400000}

local lags = {1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 1000, 2000, 5000, 10000, 30000, 60000}

local histograms = {
  duration = {bounds = times},
  timed = {bounds = times},
  waiting = {bounds = times},
  lag = {bounds = lags},
  woken = {bounds = lags},
  share = {bounds = {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}},
}

-- name makes the names of the fields once, as they follow the name of a queue. (ipairs does not exist while a library
-- is being loaded.) places caches the buckets of values up to 1,000.
local function name(histogram, what)
  histogram.places, histogram.ends, histogram.fields, histogram.sum = {}, {}, {}, " " .. what .. " sum"
  for i = 1, #histogram.bounds + 1 do
    histogram.ends[i] = " " .. (histogram.bounds[i] or "more")
    histogram.fields[i] = " " .. what .. histogram.ends[i]
  end
end

name(histograms.duration, "duration")
name(histograms.timed, "timed")
name(histograms.waiting, "waiting")
name(histograms.lag, "lag")
name(histograms.woken, "woken")
name(histograms.share, "share")

local function bucket_of(histogram, value)
  local bounds, at = histogram.bounds, 1
  while value > (bounds[at] or value) do
    at = at + 1
  end
  if value <= 1000 then
    histogram.places[value] = at
  end
  return at
end

-- add counts a value n times, in a table of what is to be added to each field. A value below 0 counts as 0.
--
--   of  the words between the name of the histogram and the bound, or nil
function buckets.add(counts, what, value, n, of)
  value = value > 0 and value or 0
  local histogram = histograms[what]
  local place = histogram.places[value] or bucket_of(histogram, value)
  local field, sum = histogram.fields[place], histogram.sum
  if of then
    local start = " " .. what .. " " .. of
    field, sum = start .. histogram.ends[place], start .. " sum"
  end
  counts[field], counts[sum] = (counts[field] or 0) + n, (counts[sum] or 0) + n * value
end
