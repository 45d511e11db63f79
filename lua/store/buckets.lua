-- buckets are the histograms of store/figures.lua. A value is counted in one bucket: the first whose bound is not
-- below it, or the last, "more", if it is above all bounds. A bucket counts its own values alone, not those of the
-- buckets below it. Programs read the bounds from the names of the fields, and add up what several partitions have.
-- So a bound may be added, and none may be taken away. queue/figures.go has the same table; a test compares them.
--
--   duration  ms from started_at to completed_at
--   waiting   ms from the instant at which it could be fetched to started_at
--   lag       ms from completed_at of a time-out to the instant at which it was written
--   share     thousandths of the time from created_at to deadline_at, rounded up, that had passed at completed_at
local buckets = {}

-- A millisecond to a day. From 1 s on the bounds are those in which people think of time.
local times = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 120000, 300000, 600000, 1800000,
  3600000, 7200000, 21600000, 43200000, 86400000}

local histograms = {
  duration = {bounds = times},
  waiting = {bounds = times},
  lag = {bounds = {1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 1000, 2000, 5000, 10000, 30000, 60000}},
  share = {bounds = {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}},
}

-- name makes the names of the fields once, as they stand behind that of a queue. (A library that is being loaded
-- has no ipairs.) places keeps where values up to 1,000 belong, as they come.
local function name(histogram, what)
  histogram.places, histogram.fields, histogram.sum = {}, {}, " " .. what .. " sum"
  for i = 1, #histogram.bounds do
    histogram.fields[i] = " " .. what .. " " .. histogram.bounds[i]
  end
  histogram.fields[#histogram.bounds + 1] = " " .. what .. " more"
end

name(histograms.duration, "duration")
name(histograms.waiting, "waiting")
name(histograms.lag, "lag")
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

-- add counts a value n times, in a table of what is to be added to each field. One below 0 counts as 0.
function buckets.add(counts, what, value, n)
  value = value > 0 and value or 0
  local histogram = histograms[what]
  local field, sum = histogram.fields[histogram.places[value] or bucket_of(histogram, value)], histogram.sum
  counts[field], counts[sum] = (counts[field] or 0) + n, (counts[sum] or 0) + n * value
end
