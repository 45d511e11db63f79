-- explain: returns the facts that explain the state of a task: its record, its end if that is decided and not yet written,
-- its line, and its worker; for an agent that waits, its wait and the pending members. It changes nothing.
--
-- ARGV[1]  id
-- ARGV[2]  cursor over the members: "" for the first call, then place of the last member returned
-- ARGV[3]  how many members to return, up to 500
--
-- Returns  {now, record, over, facts, queue, wait, member, …}, each of them a list of name and value. A list is
--          empty if there is nothing to report. Only the first call fills record, over, facts and queue
--            over    status, reason, timeout_type, error, completed_at of the end that is decided
--            facts   unreadable: why its record cannot be read; broken: since when that is known;
--                    doomed_by, doomed_at: the ancestor whose end ends the task; attempt_over: when the time of
--                    its attempt was up; ahead, lined: its place in line, and the length of the line; workers: how
--                    many have a lease; lease: end of the lease of its worker; goes: when its record is removed;
--                    owner: status of the owner of an ended or missing task; turn_until: end of the turn of a reaper;
--                    lacks: indexes in which it is missing (explain/facts.lua); lags: how late recent timeouts were
--                    written (explain/facts.lua)
--            queue   controls of its queue. This, lined and workers are also there if it timed out without a claim, or is
--                    a suspect
--            member  place, name, mask, patience, over_at, broken, lacks, and fields of its record
-- Flags    no-writes
--
-- @use agent/count: count_wait
-- @use agent/wake_agents
-- @use check/values: whole
-- @use explain/facts: facts, tell_queue, tell_wait
-- @use explain/read: put, scored
-- @use store/record
-- @use store/state: live, owner
-- @use store/try: attempt, reason
-- @use store/tx: begin, begin_read, memo, read_root
-- @use task/body: describe
-- @use task/ending
-- @use task/finish: load_task
-- @use wait/wait: read_wait

-- end_next ends an agent and its children that a clock has, in its order. It looks at 100 entries, and returns whether there are more.
local function end_next(tx, agent, clock, bound)
  local ids = attempt("ZRANGEBYSCORE", tx.key[clock], "-inf", bound, "LIMIT", 0, 100)
  for _, id in ipairs(ids) do
    if id == agent or owner(id) == agent then
      tx.on = id
      load_task(tx, id)
    end
  end
  if tx.waits then
    wake_agents(tx)
  end
  return #ids == 100
end

-- after_sweep returns what a sweep at this instant decides about an agent and its children, and whether the next sweep decides more.
-- Nothing of it is written.
local function after_sweep(tx, agent)
  local decisions = memo(tx, "after a sweep")
  if not decisions[agent] then
    local other = begin(tx.key.root)
    other.at, other.now = tx.at, tx.now
    read_root(other)
    local more = end_next(other, agent, "deadlines", "(" .. tx.now)
    more = end_next(other, agent, "limits", "(" .. tx.now) or more
    more = end_next(other, agent, "delayed", tx.now) or more
    local w = read_wait(other, agent)
    if w and w.state == "open" then
      count_wait(other, agent, w, {}, other.at)
      wake_agents(other)
    end
    decisions[agent] = {tx = other, more = more or other.left.cancel <= 0}
  end
  return decisions[agent].tx, decisions[agent].more
end

local function decide(tx, task)
  local over = ending(tx, task)
  -- An end that is not written yet can be that of the wait, and then the limit of a member in it ends nothing. And it can wake the
  -- agent, whose time in line ends its children.
  local agent = over and task.owner and not task.cancel_at and record.get(tx, task.owner)
  if agent and agent.status == "WAITING" then
    local other, more = after_sweep(tx, task.owner)
    local after = record.get(other, task.id)
    over = not live(after) and after or (more or over.reason ~= "wait_timeout") and over
  end
  return over
end

-- decided returns the end of a task whose time is up, or nil. If that cannot be decided, it also returns the error.
local function decided(tx, task)
  local ok, over = pcall(decide, tx, task)
  if ok then
    return over
  end
  return nil, reason(over)
end

-- tell_ended adds the instant at which the record of an ended or missing task is removed, and the status of its owner. If the
-- task timed out and no worker ever claimed it, it also adds what its queue is like now, which is usually what it was like then.
local function tell_ended(tx, id, about, queue)
  put(about, "goes", scored(tx.key.retained, id))
  local parent = owner(id)
  local above = parent and record.get(tx, parent)
  put(about, "owner", above and above.status)
  local task = record.get(tx, id)
  if task and task.timed_out and not task.epoch and not task.role then
    tell_queue(tx, task, about, queue)
  end
end

local function tell_decided(tx, task, over, about)
  local ends, fault = decided(tx, task)
  put(about, "unreadable", fault)
  for _, name in ipairs({"reason", "timeout_type", "error", "status"}) do
    put(over, name, ends and ends[name])
  end
  put(over, "completed_at", ends and string.format("%d", ends.completed_at))
end

local function explain(keys, argv)
  local tx, id, from, most = begin_read(keys[1]), argv[1], argv[2], whole(argv[3], 1, 500)
  if not most then
    error("argument 3 must be the number of members, 1 to 500", 0)
  elseif #id > 1024 or from ~= "" and not string.find(from, "^%-?%d+$") then
    error("argument 1 must be an id of up to 1024 bytes, and argument 2 the place of a member or empty", 0)
  end
  local over, about, queue, wait = {}, {}, {}, {}
  local answers = {tx.at, {}, over, about, queue, wait}
  local task, fault = record.get(tx, id)
  if from == "" then
    put(about, "unreadable", fault)
    put(about, "broken", scored(tx.key.broken, id))
    if task and task.status then
      answers[2] = describe(tx, task)
    end
    if task and live(task) then
      facts(tx, task, about, queue)
      tell_decided(tx, task, over, about)
    else
      tell_ended(tx, id, about, queue)
    end
  end
  if task and task.status == "WAITING" then
    tell_wait(tx, id, {from = from, most = most, decided = decided}, wait, answers)
  end
  return answers
end
