-- count adds to a counter in a queue's record, at the next flush.
local function count(k, queue, field, n)
  local counts = k.counts
  if not counts then
    counts = {}
    k.counts = counts
  end
  local of = counts[queue]
  if not of then
    of = {}
    counts[queue] = of
  end
  of[field] = (of[field] or 0) + n
end
