-- count adds to a counter in a queue's record, at the next flush.
local function count(k, queue, field, n)
  local of = k.counts[queue]
  if not of then
    of = {}
    k.counts[queue] = of
  end
  of[field] = (of[field] or 0) + n
end
