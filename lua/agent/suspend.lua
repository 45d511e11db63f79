-- Suspending an agent: the decision on the wait that it requests.
--
-- @use agent/count: cancel_member, end_due, watch_wait
-- @use agent/members: enlist, drop_earlier, pick_members, plan_children
-- @use agent/note: remembered_answer, unfit_note, write_note
-- @use agent/rules: by_end, counts_as, fires, first_end, in_time, is_fired, thresholds, verdict
-- @use queue/queue: count
-- @use store/events: emit
-- @use store/index
-- @use store/later
-- @use store/messages: alarm
-- @use store/record
-- @use store/state: live
-- @use task/body: by_priority
-- @use task/enqueue: adopt
-- @use task/finish: load_task
-- @use task/report: running_agent
-- @use wait/ends
-- @use wait/journal
-- @use wait/wait: forget_wait, waits

-- wait_limit returns the instant of the wait's limit, or nil if there is none yet. A limit that starts with the first end
-- starts now if a member has ended already; one that starts at a given instant may be in the past. The limit of an earlier
-- attempt at the same wait is kept.
--
-- A computed limit is 1.5 × the longest span of a member × the number of members, at most 30 min, and 30 min if no member
-- has a span. wait_limit stores it in s.wait.limit_ms.
local function wait_limit(tx, s, c)
  local w = s.wait
  local span = tonumber(w.limit_ms)
  if w.limit_ms == "computed" then
    span = math.floor(c.longest * c.total * 1.5)
    span = span > 0 and math.min(span, 1800000) or 1800000
    w.limit_ms = string.format("%d", span)
  end
  if c.ends then
    return c.ends
  end
  local from = tonumber(w.from)
  if span and from then
    return from + span
  end
  return span and (w.from == "registered" or c.settled > 0) and tx.at + span or nil
end

local function put(words, ...)
  for i = 1, select("#", ...), 2 do
    local name, value = select(i, ...)
    if value then
      words[#words + 1], words[#words + 2] = name, type(value) == "number" and string.format("%d", value) or value
    end
  end
end

-- counter returns the name of the queue's counter for this wait. A wait is unbounded if neither its own limit, the limit of the
-- agent's attempt, nor a deadline of the agent or its owner ends it.
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
  record.set(tx, task, "held_by", nil) -- its worker has replayed it
  if task.limit_at then
    record.set(tx, task, "attempt_at", task.limit_at)
  end
end

-- open_wait makes the agent WAITING.
--
--   fired  how and winner, if the wait has fired already and members are left to cancel; otherwise empty
local function open_wait(tx, s, c, task, fired)
  local w = s.wait
  local patience, fields = enlist(tx, s, c)
  local limit = wait_limit(tx, s, c) -- before limit_ms is stored below: wait_limit computes it
  local begun = w.from == "first"
  put(fields, "entry", w.entry, "mode", w.mode, "digest", w.digest, "label", w.label, "why", w.why ~= "" and w.why or nil, "all", c.all, "mask", w.mask,
    "size", c.total, "members", c.members, "losers", w.on_losers, "on_pending", w.on_pending,
    "on_timeout", w.on_timeout or "fail", "since", tx.now, "need_ok", c.need_ok, "most_bad", c.most_bad,
    "limit_ms", begun and w.limit_ms)
  waits(tx).of[s.id] = {state = fired.how and "fired" or "open", reason = fired.how, winner = fired.winner, fired_at = fired.how and tx.at, ok = c.ok, bad = c.bad,
    settled = c.settled, size = c.total, ends = limit, first_at = tonumber(w.from) and w.from or begun and c.settled > 0 and tx.now, names = {}, gone = {}, fields = fields,
    changed = true}
  leave_worker(tx, s, task)
  if limit or patience then
    alarm.note(tx, watch_wait(tx, s.id, limit, patience))
  end
  emit(tx, "all", "task_suspended", task, "wait_mode=" .. w.mode .. " entry=" .. w.entry .. " members=" .. string.format("%d", c.total) ..
    " wait_deadline_at=" .. (limit and string.format("%d", limit) or ""))
  task.worker = false -- the event above names the worker; from here on the task has none
  return {"WAITING"}
end

-- form_wait stores the counts so far, from which the next part continues.
local function form_wait(tx, s, c, task)
  local w = s.wait
  local _, fields = enlist(tx, s, c)
  for _, word in ipairs({"entry", w.entry, "epoch", task.epoch, "part", w.part, "call " .. w.part, s.call,
    "size", string.format("%d", c.total), "longest", string.format("%d", c.longest), "members", c.members, "mask", w.mask,
    "digest", w.digest}) do
    fields[#fields + 1] = word
  end
  -- ends: a member that ends after it is not counted
  waits(tx).of[s.id] = {state = "forming", ok = c.ok, bad = c.bad, settled = c.settled, ends = c.ends, names = {}, gone = {},
    fields = fields, changed = true}
  record.set(tx, task, "waiting", w.entry)
  record.set(tx, task, "journal", "1")
  return {"MORE"}
end

-- span returns the ms that a member can take: its attempt timeout, or the time to its deadline; 0 if it has neither.
local function span(attempt, deadline, created)
  return tonumber(attempt or deadline and deadline - created or 0)
end

-- find_settled reads the members of this part, and ends those whose time is up. It returns the ended members in the order of
-- their ends, or nil and a refusal if a member does not exist.
local function find_settled(tx, s, children)
  local made, settled, ids = {}, {}, {}
  for _, child in ipairs(children) do
    made[child.task.id] = child
  end
  for _, m in ipairs(s.members) do
    if not made[m.id] then
      ids[#ids + 1] = m.id
    end
  end
  record.load(tx, ids)
  for place, m in ipairs(s.members) do
    m.place = place
    if made[m.id] then
      local d, f = made[m.id].draft, made[m.id].task.shape.fields
      m.priority, m.span = tonumber(f.priority or 0), span(f.attempt_timeout_ms, d.deadline_at, tx.at)
    else
      local task, fault = load_task(tx, m.id)
      if task and not task.status then
        return nil, {"UNKNOWN", m.id}
      elseif not task and not (tx.aside and tx.aside.poison[m.id]) then
        error("BROKEN " .. m.id .. ": " .. fault, 0)
      end
      task = task or {status = "PENDING"} -- its end cannot be decided, so it counts as live
      m.priority, m.span = tonumber(task.priority or 0), span(task.attempt_timeout_ms, task.deadline_at, task.created_at)
      if not live(task) then
        m.ended_at, m.as, m.fired = tonumber(task.completed_at), counts_as(m.mask or s.wait.mask, task), is_fired(task, task)
        settled[#settled + 1] = m
      end
    end
  end
  by_end(settled)
  return settled
end

-- earlier_part returns the counts of the earlier parts of the wait, to which this part adds. If this part does not follow
-- them, it returns nil and a refusal.
--
--   ok, bad, settled    counters                    names    of members that this part counts
--   size, members       how many so far, and their names, with spaces between them
--   longest             of the members' spans       last     whether this is the last part
--   recounted           ignore the stored list of ended members
--   need_ok, most_bad, all, total, ends             set later: thresholds, number of members, and the limit
local function earlier_part(tx, s, task)
  local w = s.wait
  local c = {ok = 0, bad = 0, settled = 0, size = 0, longest = 0, members = "", names = {}, last = w.part == w.of}
  if w.part == "1" then
    c.recounted = true -- the stored list belongs to another wait
    return c
  end
  local f = redis.call("HMGET", tx.key.wait .. s.id, "state", "entry", "epoch", "part", "ok", "bad", "settled", "size", "longest",
    "members", "digest")
  if f[1] ~= "forming" or f[2] ~= w.entry or f[3] ~= task.epoch or tonumber(f[4]) ~= w.part - 1 or f[11] ~= w.digest then
    return nil, {"INVALID", "part", "must follow the part before it: begin again with part 1"}
  end
  c.ok, c.bad, c.settled, c.size = tonumber(f[5]), tonumber(f[6]), tonumber(f[7]), tonumber(f[8])
  c.longest, c.members = tonumber(f[9]), f[10]
  return c
end

-- too_late reports whether the limit had passed before any of these children ended.
local function too_late(tx, s, c, names)
  if not c.ends or c.ends >= tx.at then
    return false
  end
  local ids = {}
  for i, name in ipairs(names) do
    ids[i] = s.id .. "." .. name
  end
  local _, at = first_end(tx, ids)
  return not at or not in_time(c.ends, at)
end

-- collected answers a wait of the mode collect with the ends that the agent has not received yet. Children whose time is up
-- end first. It returns "satisfied", or nil if the agent must wait. If the limit had passed before the first of these ends,
-- the agent must wait too: the sweep reports the timeout, and the next wait returns the ends.
--
--   c  the counts so far; collected sets names and members
local function collected(tx, s, c)
  end_due(tx, s.id, tx.at)
  local names = ends.kept(tx, s.id)
  if not names[1] or too_late(tx, s, c, names) then
    return nil
  end
  c.names = ends.take(tx, s.id)
  c.members = table.concat(c.names, " ")
  return "satisfied"
end

-- over returns how the wait fires before it has begun, or a false value. A wait of the mode all fails at once if a member
-- failed before.
local function over(s, c)
  return fires(c) or s.wait.mode == "all" and c.bad > 0 and "impossible"
end

-- read_member returns a member that ended while earlier parts were sent.
local function read_member(tx, s, name)
  local task, fault = record.get(tx, s.id .. "." .. name)
  if not task or not task.completed_at then
    error(fault or s.id .. "." .. name .. " has ended, but its record is gone", 0)
  end
  local mask = redis.call("HGET", tx.key.wait .. s.id, "mask " .. name) or s.wait.mask
  return {name = name, ended_at = tonumber(task.completed_at), as = counts_as(mask, task), fired = is_fired(task, task)}
end

local function add(c, m)
  c.settled = c.settled + 1
  c.ok, c.bad = c.ok + (m.as == "o" and 1 or 0), c.bad + (m.as == "b" and 1 or 0)
end

-- add_earlier adds the members that earlier parts counted, because they are counted again in the order of their ends.
local function add_earlier(tx, s, settled, c)
  local places, n = {}, -c.size
  for name in string.gmatch(c.members, "%S+") do
    n = n + 1
    places[name] = n
  end
  for _, name in ipairs(redis.call("LRANGE", tx.key.settled .. s.id, 0, -1)) do
    local m = read_member(tx, s, name)
    m.place = places[name]
    settled[#settled + 1] = m
  end
  later.drop(tx, tx.key.settled .. s.id)
  c.ok, c.bad, c.settled, c.recounted = 0, 0, 0, true
  by_end(settled)
end

-- decider returns the deciding member when there are too many ended members to read them all again: the first member, in
-- the order of the parts, with which the wait fires, if it is among the first 500; otherwise the last member.
local function decider(tx, s, c)
  local so_far = {ok = 0, bad = 0, settled = 0, need_ok = c.need_ok, most_bad = c.most_bad, all = c.all}
  for _, name in ipairs(redis.call("LRANGE", tx.key.settled .. s.id, 0, 499)) do
    add(so_far, read_member(tx, s, name))
    if over(s, so_far) then
      return name
    end
  end
  return redis.call("LINDEX", tx.key.settled .. s.id, -1) or nil
end

-- decide_wait counts the ended members until the wait fires. It returns how it fires and the deciding member, or nil. Members
-- of earlier parts are counted again, so that the result is the same as with one part: the earliest end decides, and not
-- the end that was counted first.
local function decide_wait(tx, s, settled, c)
  if s.wait.mode == "collect" then
    return c.last and collected(tx, s, c) or nil
  end
  local decides = c.last and s.wait.mode ~= "peek"
  local how, winner
  if c.last and c.settled > 0 and c.settled <= 500 then
    add_earlier(tx, s, settled, c)
  end
  how = decides and over(s, c)
  winner = how and c.settled > 0 and decider(tx, s, c) or nil
  for _, m in ipairs(settled) do
    if how then
      break
    elseif in_time(c.ends, m.ended_at) then
      m.counted = true
      add(c, m)
      c.names[#c.names + 1] = m.name
      how = decides and over(s, c)
      winner = how and m.name or nil
    end
  end
  if s.wait.mode == "peek" and c.last then
    how = "satisfied"
  end
  return how or nil, winner
end

-- answer_wait answers a wait that fires before it has begun. Limits of members that an earlier attempt stored are removed,
-- so that the next wait does not use them.
local function answer_wait(tx, s, c, task, fired)
  local w, losers = s.wait, {}
  for _, m in ipairs(s.members) do
    if w.on_losers == "cancel" and not m.counted then
      losers[#losers + 1] = m
    end
  end
  by_priority(losers)
  for _, m in ipairs(losers) do
    cancel_member(tx, m.id, "not_needed")
  end
  local settled = c.recounted and {} or redis.call("LRANGE", tx.key.settled .. s.id, 0, -1)
  for _, name in ipairs(c.names) do
    settled[#settled + 1] = name
  end
  local text = verdict({label = w.label, digest = w.digest, members = c.members}, fired.how, fired.winner, tx.at, settled)
  journal.drop_patience(tx, s.id)
  if task.waiting then
    forget_wait(tx, task)
  end
  journal.add(tx, task, {{tonumber(w.entry), text}})
  return {"READY", text}
end

-- repeated returns the answer to a repeat of the call that suspended the agent, or nil.
local function repeated(tx, s)
  local task = record.get(tx, s.id)
  if task and task.suspended_by == s.call then
    return {"WAITING"}
  end
end

-- prepare makes all checks that can refuse the wait. It returns the counts so far, the children to create, and the ended
-- members; or nil and a refusal.
local function prepare(tx, s, task)
  local c, answer = earlier_part(tx, s, task)
  if not c then
    return nil, answer
  end
  drop_earlier(s, c.members)
  c.total = c.size + #s.members
  if c.total > tonumber(s.wait.most) then
    return nil, {"INVALID", "members", "are more than " .. s.wait.most .. ": wait for groups of them, or raise the limit"}
  end
  local field, fault
  c.need_ok, c.most_bad, c.all, field, fault = thresholds(s.wait.mode, c.total, tonumber(s.wait.need))
  if field and (c.last or field == "mode") then
    return nil, {"INVALID", field, fault}
  end
  local children, settled
  children, answer = plan_children(tx, s)
  if children then
    settled, answer = find_settled(tx, s, children)
  end
  return not answer and c, answer or children, settled
end

-- enter creates the children, stores the note and deletes an earlier wait. If the agent comes to the same wait again, its
-- limit and the limits of its members are kept.
local function enter(tx, s, c, children, task)
  local kept = journal.read(tx, s.id, "until")[1]
  local entry, until_at, digest = string.match(kept or "", "^(%d+) (%w+) (.*)$")
  local again = entry == s.wait.entry and digest == s.wait.digest
  c.ends = again and tonumber(until_at) or nil
  redis.call("ZCARD", tx.key.patience .. s.id) -- these raise here, before anything is written, if a key is of the wrong type
  redis.call("LLEN", tx.key.settled .. s.id)
  redis.call("ZCARD", tx.key.pending .. s.id)
  redis.call("HLEN", tx.key.wait .. s.id)
  for _, child in ipairs(children) do
    adopt(tx, child.task, child.draft, task)
  end
  if s.wait.part == "1" then
    if task.waiting then
      forget_wait(tx, task)
    end
    if not again then
      c.patience_dropped = true
      journal.drop_patience(tx, s.id)
    end
  end
  write_note(tx, task, s.note)
  local names = {c.members ~= "" and c.members or nil}
  for _, m in ipairs(s.members) do
    names[#names + 1] = m.name
    c.longest = math.max(c.longest, m.span)
  end
  c.members = table.concat(names, " ")
  if tonumber(s.wait.from) and (c.last or s.wait.limit_ms ~= "computed") then
    c.ends = wait_limit(tx, s, c) -- it may be over, and then the ends after it do not count
  end
end

-- suspend_agent begins the wait that an agent requests, answers it at once, or refuses it. Every refusal comes before any
-- change. It returns the answer (call/suspend.lua).
--
--   s  agent/suspension.lua
local function suspend_agent(tx, s)
  local answer = repeated(tx, s)
  if answer then
    return answer
  end
  local task, refusal = running_agent(tx, s, "suspend")
  if not task then
    return refusal
  end
  if task.waiting and redis.call("HGET", tx.key.wait .. s.id, "call " .. s.wait.part) == s.call then
    return {"MORE"} -- a repeat
  end
  answer = remembered_answer(tx, s) or pick_members(s) or unfit_note(tx, s)
  if answer then
    return answer
  end
  local c, children, settled = prepare(tx, s, task)
  if not c then
    return children
  end
  enter(tx, s, c, children, task)
  local fired = {}
  fired.how, fired.winner = decide_wait(tx, s, settled, c)
  if fired.how and (s.wait.on_losers == "keep" or s.wait.of == "1" and c.total - c.settled <= 100) then
    return answer_wait(tx, s, c, task, fired)
  elseif not c.last then
    return form_wait(tx, s, c, task)
  end
  answer = open_wait(tx, s, c, task, fired)
  answer.fired = fired.how
  return answer
end
