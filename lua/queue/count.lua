-- count adds to the counters in a queue's record.
--
-- @use store/own
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

-- run counts a task that a worker begins to run (n = 1) or no longer runs (n = -1).
function count.run(tx, queue, worker, n)
  count.add(tx, queue, "running", n)
  local counted = tx.root.recounted
  if counted and worker <= counted then -- a count that is under way has counted this worker already
    local recounts = own(tx, "recounts")
    recounts[queue] = (recounts[queue] or 0) + n
  end
end

function count.write(tx)
  for queue, n in pairs(tx.recounts) do
    try(tx, "HINCRBY", tx.key.recount, queue, string.format("%d", n))
  end
  for queue, counts in pairs(tx.counts) do
    for field, n in pairs(counts) do
      if n ~= 0 then
        local total = try(tx, "HINCRBY", tx.key.queue .. queue, field, string.format("%d", n))
        if field == "enqueued" and total == n then -- its first task
          try(tx, "SADD", tx.key.queues, queue)
        end
      end
    end
    if tx.root.controlled and (counts.running or 0) < 0 and (try(tx, "ZCARD", tx.key.ready .. queue) or 0) > 0 then
      wake.note(tx, queue) -- it may have been full
    end
  end
end
