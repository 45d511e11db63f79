-- figures counts, by kind and queue, how many tasks were created, how they ended and how long they took, since the
-- namespace was opened. The commit that makes it true also writes the counts in Redis. So each event counts once, and
-- all readers get the same figures.
--
-- A kind has a hash. The name of a field is the name of a queue, a figure, and what is counted:
--
--   <queue> enqueued <source> <when>                client, agent (a child), hook or retry; now or later (task/draft.lua)
--   <queue> ended <status>                          ends: of COMPLETED
--   <queue> ended <status> <reason>                 of FAILED and CANCELLED
--   <queue> ended <status> timeout <timeout_type> <policy>   of timeouts; versions before did not write the policy
--   <queue> retried timeout                         attempts that took too long and were followed by another one
--   <queue> wait timeout <policy>                   waits of agents that reached their limit; fail or proceed_with_available
--   <queue> late                                    outcomes that came after the task had timed out
--   <queue> <histogram> <bound>                     values in the bucket of this bound (store/buckets.lua)
--   <queue> <histogram> more                        values above the last bound
--   <queue> <histogram> sum                         the sum of all values
--   - node <name> ended <status> …                  the same of a node of a flow, in the hash of its runs, for all queues
--   - node <name> retried timeout                   and of its attempts; nodes beyond a bound share the name "-"
--   about                                           what the hash is, in words
--
-- A namespace that was opened without figures counts nothing.
--
-- @use store/buckets
-- @use store/own
-- @use store/policy
-- @use store/tally

-- same_figures reports whether two ends add the same to the figures. So many tasks that were made together and end
-- together cost little more than one of them.
local function same_figures(a, b)
  return a.completed_at == b.completed_at and a.created_at == b.created_at and a.deadline_at == b.deadline_at and
    a.status == b.status and a.reason == b.reason and a.timeout_type == b.timeout_type and a.on_deadline == b.on_deadline and
    a.kind == b.kind and a.queue == b.queue and a.node == b.node and not a.under_way and not b.under_way and not a.children and not b.children
end

local figures = {}

-- note adds a task to the ends to be counted. The task must still have its status from before the end. A task that is
-- in line again has no attempt under way, and so no duration and no waiting time.
function figures.note(tx, task)
  if tx.root.figures then
    local ended = own(tx, "figures")
    ended[#ended + 1] = task
    task.under_way = task.status ~= "PENDING" or task.woken
  end
end

-- how_it_ended returns the name of a field, without its queue.
local function how_it_ended(task)
  if not task.reason then
    return " ended " .. task.status
  elseif not task.timeout_type then
    return " ended " .. task.status .. " " .. task.reason
  end
  return " ended " .. task.status .. " " .. task.reason .. " " .. task.timeout_type .. " " .. policy(task)
end

-- add counts n ends that are alike.
local function add(counts, tx, task, n)
  local how = how_it_ended(task)
  counts[how] = (counts[how] or 0) + n
  if task.node then
    local nodes, begins = tally.of_node(tx, task)
    nodes[begins .. how] = (nodes[begins .. how] or 0) + n
  end
  local created, completed = tonumber(task.created_at), tonumber(task.completed_at)
  local deadline = tonumber(task.deadline_at or nil)
  local started = task.under_way and tonumber(task.started_at or nil)
  if started then -- its owner's wait may have ended before the attempt began; such a duration counts as 0
    buckets.add(counts, task.timeout_type and "timed" or "duration", completed - started, n)
    buckets.add(counts, "waiting", started - (task.ready_at or created), n)
  end
  if task.timeout_type then
    buckets.add(counts, "lag", tx.at - completed, n, task.timeout_type)
  end
  if deadline then
    local span = deadline - created
    buckets.add(counts, "share", span > 0 and math.ceil(1000 * (completed - created) / span) or 1000, n)
  end
end

-- write counts the ends of a unit, and writes all that the unit has counted.
function figures.write(tx)
  local ended, from = tx.figures, 1
  while ended[from] do
    local task, to = ended[from], from + 1
    while ended[to] and same_figures(task, ended[to]) do
      to = to + 1
    end
    add(tally.of(tx, task), tx, task, to - from)
    from = to
  end
  tally.write(tx)
end
