-- count adds to the counters in a queue's record.
--
-- @use store/try
-- @use queue/wake
local count = {}

function count.add(tx, queue, field, n)
  local of = tx.counts[queue]
  if not of then
    of = {}
    tx.counts[queue] = of
  end
  of[field] = (of[field] or 0) + n
end

function count.write(tx)
  for queue, counts in pairs(tx.counts) do
    for field, n in pairs(counts) do
      if n ~= 0 then
        local total = try(tx, "HINCRBY", tx.key.queue .. queue, field, string.format("%d", n))
        if field == "enqueued" and total == n then -- its first
          try(tx, "SADD", tx.key.queues, queue)
        end
      end
    end
    if tx.root.controlled and (counts.running or 0) < 0 and (try(tx, "ZCARD", tx.key.ready .. queue) or 0) > 0 then
      wake.note(tx, queue) -- it may have been full
    end
  end
end
