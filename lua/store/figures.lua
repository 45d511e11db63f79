-- figures counts how tasks ended and how long they took, ever, by kind and queue. The counts are in Redis and are
-- written by the commit that writes the ends. So each end counts once, and all who read the figures read the same.
--
-- A kind has a hash. The name of a field is that of a queue, a figure, and what is counted:
--
--   <queue> ended <status>                          ends: of COMPLETED
--   <queue> ended <status> <reason>                 of FAILED and CANCELLED
--   <queue> ended <status> timeout <timeout_type>   of time-outs
--   <queue> <histogram> <bound>                     values in the bucket of this bound (store/buckets.lua)
--   <queue> <histogram> more                        values above the last bound
--   <queue> <histogram> sum                         the sum of all values
--
-- Off for a namespace that was opened so; then nothing is noted.
--
-- @use store/add_figures
-- @use store/buckets
-- @use store/own
local figures = {}

-- note has the end of a task counted. Its status is still that before the end. A task that stood in line again has
-- no attempt under way, and so neither a duration nor a time of waiting.
function figures.note(tx, task)
  if tx.root.figures then
    local ended = own(tx, "figures")
    ended[#ended + 1] = task
    task.under_way = task.status ~= "PENDING" or task.woken
  end
end

local function add(counts, tx, task)
  local how = " ended " .. task.status
  if task.reason then
    how = how .. " " .. task.reason .. (task.timeout_type and " " .. task.timeout_type or "")
  end
  counts[how] = (counts[how] or 0) + 1
  local completed, started = tonumber(task.completed_at), task.under_way and tonumber(task.started_at or nil)
  if started then -- none below 0: the wait of its owner may have been over before it began, or the clock was set back
    buckets.add(counts, "duration", math.max(completed - started, 0))
    buckets.add(counts, "waiting", math.max(started - (task.ready_at or task.created_at), 0))
  end
  if task.timeout_type then
    buckets.add(counts, "lag", tx.at - completed)
  end
  local deadline = tonumber(task.deadline_at or nil)
  if deadline then
    local used, span = completed - task.created_at, deadline - task.created_at
    buckets.add(counts, "share", span > 0 and math.max(math.ceil(1000 * used / span), 0) or 1000)
  end
end

-- write adds up what a unit has ended, so that its tasks of one kind and queue cost as much as one of them.
function figures.write(tx)
  local kinds = {}
  for _, task in ipairs(tx.figures) do
    local queues = kinds[task.kind] or {}
    kinds[task.kind] = queues
    queues[task.queue] = queues[task.queue] or {}
    add(queues[task.queue], tx, task)
  end
  for kind, queues in pairs(kinds) do
    for queue, counts in pairs(queues) do
      add_figures(tx, kind, queue, counts)
    end
  end
end
