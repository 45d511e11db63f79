-- record reads a task whole, so fields that a newer version added travel along.
-- All values are strings; what it has not is false or nil, and status is false
-- when there is no such task.
--
-- The names give the table room for a usual task at once: grown a field at a
-- time it would be laid out anew five times, which is half the cost of a read.
local function record(k, id)
  local task = {
    id = id, status = false, version = false, kind = false, queue = false, created_at = false,
    deadline_at = false, epoch = false, worker = false, started_at = false, retries = false,
    limit_at = false, max_retries = false, call = false, headers = false, timed_out = false,
  }
  local flat = redis.call("HGETALL", k.task .. id)
  for i = 1, #flat, 2 do
    task[flat[i]] = flat[i + 1]
  end
  return task
end
