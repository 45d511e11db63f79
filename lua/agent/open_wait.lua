-- open_wait makes the agent WAITING.
--
--   fired  how and winner, if the wait has fired already and members are left to cancel; otherwise empty
--
-- @use store/alarm
-- @use store/emit
-- @use store/index
-- @use store/own
-- @use store/record
-- @use queue/count
-- @use agent/enlist
-- @use agent/wait_limit
-- @use agent/watch_wait

local function put(words, ...)
  for i = 1, select("#", ...), 2 do
    local name, value = select(i, ...)
    if value then
      words[#words + 1], words[#words + 2] = name, type(value) == "number" and string.format("%d", value) or value
    end
  end
end

-- counter returns the counter of the queue that counts this wait. A wait is unbounded if nothing ends it: no limit of its
-- own, no limit of the agent's attempt, and no deadline, the agent's or its owner's.
local function counter(s, task)
  local bounded = s.wait.limit_ms or task.limit_at or task.deadline_at or task["until"]
  return (bounded and "bounded_" or "unbounded_") .. s.wait.mode
end

local function leave_worker(tx, s, task)
  index.remove(tx, tx.key.claims .. task.worker, s.id)
  count.run(tx, task.queue, task.worker, -1)
  count.add(tx, task.queue, "waiting", 1)
  record.set(tx, task, "counted_as", counter(s, task))
  count.add(tx, task.queue, task.counted_as, 1)
  task.status = "WAITING"
  record.touch(tx, task)
  record.set(tx, task, "waiting", s.wait.entry)
  record.set(tx, task, "suspended_by", s.call)
  record.set(tx, task, "journal", "1")
  record.set(tx, task, "passed_on", nil)
  if task.limit_at then
    record.set(tx, task, "attempt_at", task.limit_at)
  end
end

local function open_wait(tx, s, c, task, fired)
  local w = s.wait
  local patience, fields = enlist(tx, s, c)
  local ends = wait_limit(tx, s, c) -- before limit_ms is stored below: wait_limit computes it
  local begun = w.from == "first"
  put(fields, "entry", w.entry, "mode", w.mode, "digest", w.digest, "label", w.label, "why", w.why ~= "" and w.why or nil, "all", c.all, "mask", w.mask,
    "size", c.total, "members", c.members, "losers", w.on_losers, "on_pending", w.on_pending,
    "on_timeout", w.on_timeout or "fail", "since", tx.now, "need_ok", c.need_ok, "most_bad", c.most_bad,
    "limit_ms", begun and w.limit_ms)
  own(tx, "waits")[s.id] = {state = fired.how and "fired" or "open", reason = fired.how, winner = fired.winner, fired_at = fired.how and tx.at, ok = c.ok, bad = c.bad,
    settled = c.settled, size = c.total, ends = ends, first_at = tonumber(w.from) and w.from or begun and c.settled > 0 and tx.now, names = {}, gone = {}, fields = fields,
    changed = true}
  leave_worker(tx, s, task)
  if ends or patience then
    alarm.note(tx, watch_wait(tx, s.id, ends, patience))
  end
  emit(tx, "all", "task_suspended", task, "wait_mode=" .. w.mode .. " entry=" .. w.entry .. " members=" .. string.format("%d", c.total) ..
    " wait_deadline_at=" .. (ends and string.format("%d", ends) or ""))
  task.worker = false -- the event above names the worker; from here on the task has none
  return {"WAITING"}
end
