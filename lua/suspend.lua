-- suspend: an agent waits for children of its own, and gives up its worker until they
-- have settled. All or nothing: the children that it has made up to here, what it wants
-- to remember, the wait, and its new status.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  agent
-- ARGV[2]  epoch, as fetch gave it
-- ARGV[3]  worker
-- ARGV[4]  call: kept over repeats of this call
-- ARGV[5]  how many fields the wait has; then name and value of each:
--            entry       its number in the journal; required, as is digest
--            mode, need  include/thresholds.lua; mode is all if absent or empty
--            digest      of all that must be the same when the agent comes here again, opaque
--            label       says the same to people
--            limit_ms    how long it may take, or "computed" (below)
--            from        when that begins: registered (default), or first: with the first end
--            on_timeout  proceed_with_available or fail, for the event
--            on_pending  of members that have not ended at the limit: cancel (default) or keep
--            on_losers   of those that nobody needs any more: keep (default) or cancel
--            mask        five letters (include/regard.lua), "obbbb" if absent
--            most        members that it may have, 10000 if absent
--            part, of    this is part 1…n of n of its members; 1 of 1 if absent
-- then     how many members; for each its id, ms of patience or "", mask or ""
-- then     what to note: include/noted.lua
-- then     children to make, as enqueue has them
--
-- A limit that is computed: the longest time that a member has, times their number, half
-- as much again; 30 min at the most, and if no member has one.
--
-- Parts but the last only begin to count: the agent goes on running. The same id twice
-- is one member.
--
-- Returns  {now, "WAITING"}            the agent waits; also when this call had done it before
--          {now, "READY", answer}      the answer is known, and the agent runs on
--          {now, "MORE"}               this part is taken
--          {now, "LOST", status}       the agent is no longer this claim's
--          {now, "CANCELLING", instant}  it is to stop, and begins nothing any more
--          {now, "MISSING"}            no such task
--          {now, "DIVERGED", label}    it was at another wait when it was here before
--          {now, "FOREIGN", id}        that is no child of this agent
--          {now, "UNKNOWN", id}        it has no such child
--          {now, "CHILD", n, word, …}  the nth child was refused, as enqueue does
--          {now, "INVALID", field, why}
--          all of these but the first three changed nothing
-- Ends     what is late
-- Flags
--
-- @include keys
-- @include now
-- @include holder
-- @include noted
-- @include note
-- @include remember
-- @include handed
-- @include consider
-- @include admit
-- @include overdue
-- @include live
-- @include owner
-- @include thresholds
-- @include regard
-- @include reached
-- @include verdict
-- @include lose
-- @include drop
-- @include later
-- @include alarm
-- @include count
-- @include emit
-- @include guard
-- @include whole

local k, at = keys(KEYS[1]), now()
local id, call = ARGV[1], ARGV[4]
local w = {mask = "obbbb", on_pending = "cancel", on_losers = "keep", from = "registered", part = "1", of = "1", most = "10000", label = ""}
local members, task = {}, nil

local function counted(i)
  local n = tonumber(ARGV[i])
  if not n or n < 0 or n ~= math.floor(n) then
    error("suspend: " .. tostring(ARGV[i]) .. " is no count", 0)
  end
  return n
end

-- unsound names what is wrong with the wait as it was sent, and why.
local function unsound()
  for name in pairs(w) do
    if not string.find(" entry mode need digest label limit_ms from on_timeout on_pending on_losers mask most part of ", " " .. name .. " ", 1, true) then
      return name, "is not a field of a wait"
    end
  end
  if w.mode == nil or w.mode == "" then
    w.mode = "all"
  end
  for _, name in ipairs({"entry", "digest"}) do
    if not w[name] then
      return name, "is required"
    end
  end
  for _, name in ipairs({"entry", "need", "part", "of", "most"}) do
    if w[name] and (not string.find(w[name], "^%d+$") or #w[name] > 15) then
      return name, "must be a whole number"
    end
  end
  if string.sub(w.entry, 1, 1) == "0" then
    return "entry", "must be a whole number from 1, without a 0 in front"
  elseif not string.find(w.part, "^[1-9]") or not string.find(w.of, "^[1-9]") or tonumber(w.part) > tonumber(w.of) then
    return "part", "must be one of 1 to of, without a 0 in front"
  elseif string.find(w.digest, "%s") or w.digest == "" then
    return "digest", "must be one word"
  elseif string.find(w.label, "\n", 1, true) then
    return "label", "must be one line"
  elseif #members > 1000 then
    return "members", "are " .. #members .. ", and a call takes 1000: send them in parts"
  elseif w.limit_ms and w.limit_ms ~= "computed" and (not string.find(w.limit_ms, "^[1-9]%d*$") or #w.limit_ms > 15) then
    return "limit_ms", "must be a whole number from 1, or computed"
  elseif w.from ~= "registered" and w.from ~= "first" then
    return "from", "must be registered or first"
  elseif w.on_pending ~= "cancel" and w.on_pending ~= "keep" then
    return "on_pending", "must be cancel or keep"
  elseif w.on_losers ~= "cancel" and w.on_losers ~= "keep" then
    return "on_losers", "must be cancel or keep"
  elseif w.on_timeout and w.on_timeout ~= "fail" and w.on_timeout ~= "proceed_with_available" then
    return "on_timeout", "must be fail or proceed_with_available"
  end
  local masks = {[w.mask] = true}
  for _, m in ipairs(members) do
    masks[m.mask or w.mask] = true
    if m.patience and (not string.find(m.patience, "^[1-9]%d*$") or #m.patience > 15) then
      return "patience", "must be a whole number from 1"
    end
  end
  for mask in pairs(masks) do
    if not string.find(mask, "^[obn][obn][obn][obn][obn]$") then
      return "mask", "must be five letters, each of them o, b or n"
    end
  end
end

-- distinct leaves one of several members with the same id, and names each by the last
-- part of its id. It returns an answer if one is not a child of this agent.
local function distinct()
  local seen, kept = {}, {}
  for _, m in ipairs(members) do
    if owner(m.id) ~= id then
      if m.id == id or string.sub(id, 1, #m.id + 1) == m.id .. "." then
        return {at, "INVALID", "members", m.id .. " is the agent itself or an owner of it, which cannot end before it"}
      end
      return {at, "FOREIGN", m.id}
    elseif m.patience and string.sub(m.id, #id + 2, #id + 3) == "s-" then
      return {at, "INVALID", "patience", m.id .. " is a signal, which no wait cancels: give the wait a limit"}
    elseif not seen[m.id] then
      seen[m.id] = true
      m.name = string.sub(m.id, #id + 2)
      kept[#kept + 1] = m
    end
  end
  members = kept
end

-- unlike leaves out the members that an earlier part of the wait had.
local function unlike(earlier)
  if earlier == "" then
    return
  end
  local seen, kept = {}, {}
  for name in string.gmatch(earlier, "%S+") do
    seen[name] = true
  end
  for _, m in ipairs(members) do
    if not seen[m.name] then
      kept[#kept + 1] = m
    end
  end
  members = kept
end

-- planned looks at the children that are to be made. It returns them with their plans,
-- or nil and an answer if one is refused.
local function planned(from)
  local children = {}
  local twice = {}
  for n, child in ipairs(handed(k, "suspend", ARGV, from)) do
    local ok, refusal, plan = pcall(consider, k, child, at)
    if not ok then
      return nil, {at, "CHILD", n, "BROKEN", child.id or "", type(refusal) == "table" and refusal.err or tostring(refusal)}
    elseif refusal and refusal[1] ~= "OK" then
      return nil, {at, "CHILD", n, unpack(refusal)}
    elseif owner(child.id) ~= id then
      return nil, {at, "FOREIGN", child.id}
    elseif twice[child.id] then
      return nil, {at, "CHILD", n, "INVALID", "id", "is given twice"}
    end
    twice[child.id] = true
    if plan then
      children[#children + 1] = {task = child, plan = plan}
    end
  end
  return children
end

-- in_order sorts members by when they ended.
local function in_order(settled)
  table.sort(settled, function(a, b)
    return a.ended < b.ended or a.ended == b.ended and a.place < b.place
  end)
end

-- look reads what became of the members so far, and ends those whose time is up. It
-- returns those that have settled, in the order they did, or nil and an answer if there
-- is none of an id.
local function look(children)
  local made, settled = {}, {}
  for _, child in ipairs(children) do
    local c = child.task
    made[c.id] = {status = "PENDING", priority = c.priority, attempt_timeout_ms = c.attempt_timeout_ms,
      deadline_at = child.plan.deadline, created_at = at}
  end
  for place, m in ipairs(members) do
    local t = made[m.id]
    if not t then
      local f = redis.call("HMGET", k.task .. m.id, "status", "completed_at", "reason", "on_deadline", "priority",
        "attempt_timeout_ms", "created_at", "deadline_at", "until", "limit_at", "grace_at", "available_at", "timeout_type")
      t = {timeout_type = f[13], status = f[1], completed_at = f[2], reason = f[3], on_deadline = f[4], priority = f[5] or nil,
        attempt_timeout_ms = f[6], created_at = f[7], deadline_at = f[8]}
      if not t.status then
        return nil, {at, "UNKNOWN", m.id}
      end
      local due = false
      for i = 8, 12 do
        due = due or f[i] and tonumber(f[i]) <= at
      end
      if due and live(t) then
        t = overdue(k, m.id, at)
      end
    end
    m.place, m.priority = place, tonumber(t.priority) or 0
    m.span = tonumber(t.attempt_timeout_ms or t.deadline_at and t.deadline_at - t.created_at or 0)
    if not live(t) then
      m.ended, m.as = tonumber(t.completed_at), regard(m.mask or w.mask, t)
      settled[#settled + 1] = m
    end
  end
  in_order(settled)
  return settled
end

-- fires tells whether the wait is over before it has begun. One that failed before it
-- began fails a join at once.
local function fires(c)
  return reached(c) or w.mode == "all" and c.bad > 0 and "impossible"
end

-- told is a member that ended while the parts before were sent.
local function told(name)
  local f = redis.call("HMGET", k.task .. id .. "." .. name, "status", "completed_at", "reason", "on_deadline", "timeout_type")
  local mask = redis.call("HGET", k.wait .. id, "mask " .. name) or w.mask
  return {name = name, ended = tonumber(f[2]),
    as = regard(mask, {status = f[1], reason = f[3], on_deadline = f[4], timeout_type = f[5]})}
end

-- add counts one member.
local function add(c, m)
  c.settled = c.settled + 1
  if m.as == "o" then
    c.ok = c.ok + 1
  elseif m.as == "b" then
    c.bad = c.bad + 1
  end
end

-- anew adds members that ended while the parts before were sent, so that what decides is
-- what it would be in one part: the first end, not the first that was seen.
local function anew(settled, c)
  local places, n = {}, -c.size
  for name in string.gmatch(c.members, "%S+") do
    n = n + 1
    places[name] = n
  end
  for _, name in ipairs(redis.call("LRANGE", k.settled .. id, 0, -1)) do
    local m = told(name)
    m.place = places[name]
    settled[#settled + 1] = m
  end
  redis.call("DEL", k.settled .. id)
  c.ok, c.bad, c.settled = 0, 0, 0
  in_order(settled)
end

-- decider is the member that decided, of so many that reading them all again would take
-- too long: the first in the order of the parts, if it is among the first 500.
local function decider(c)
  local so_far = {ok = 0, bad = 0, settled = 0, need_ok = c.need_ok, most_bad = c.most_bad, all = c.all}
  for _, name in ipairs(redis.call("LRANGE", k.settled .. id, 0, 499)) do
    add(so_far, told(name))
    if fires(so_far) then
      return name
    end
  end
  return redis.call("LINDEX", k.settled .. id, -1) or nil
end

-- weigh counts the members that have settled, up to where the wait fires. It returns how
-- it does and by which, or nil.
local function weigh(settled, c)
  local how, winner
  if c.last and c.settled > 0 and c.settled <= 500 then
    anew(settled, c)
  end
  if c.last and w.mode ~= "peek" then
    how = fires(c)
    winner = how and c.settled > 0 and decider(c) or nil
  end
  for _, m in ipairs(settled) do
    if how then
      break
    elseif not (c.ends and m.ended > c.ends) then
      m.counted = true
      add(c, m)
      c.names[#c.names + 1] = m.name
      if c.last and w.mode ~= "peek" then
        how = fires(c)
        winner = how and m.name
      end
    end
  end
  if w.mode == "peek" and c.last then
    how = "satisfied"
  end
  return how, winner
end

-- spread writes a list of values, as many as a command takes at a time.
local function spread(command, key, values)
  for i = 1, #values, 4000 do
    redis.call(command, key, unpack(values, i, math.min(i + 3999, #values)))
  end
end

-- enlist writes the members that are pending, and those that have settled.
local function enlist(c)
  local open = {}
  for _, m in ipairs(members) do
    if not m.counted then
      open[#open + 1] = string.format("%d", (3 - m.priority) * 16777216 + c.size + m.place)
      open[#open + 1] = m.name
    end
    if m.patience then
      redis.call("ZADD", k.patience .. id, "NX", string.format("%d", at + m.patience), m.name)
    end
    if m.mask then
      redis.call("HSET", k.wait .. id, "masks", "1", "mask " .. m.name, m.mask)
    end
  end
  spread("ZADD", k.pending .. id, open)
  spread("RPUSH", k.settled .. id, c.names)
end

-- limited is the instant at which the wait is out of time, nil for none so far. One that
-- begins with the first end begins now if that was before. A wait that an earlier attempt
-- came to keeps the limit that it had.
local function limited(c)
  local span = tonumber(w.limit_ms)
  if w.limit_ms == "computed" then
    span = math.floor(c.longest * c.total * 1.5)
    span = span > 0 and math.min(span, 1800000) or 1800000
    w.limit_ms = string.format("%d", span)
  end
  if c.ends then
    return c.ends
  end
  return span and (w.from == "registered" or c.settled > 0) and at + span or nil
end

-- begun is what earlier parts of the wait have counted so far; nil and an answer if this
-- is not the part that comes next.
local function begun()
  local c = {ok = 0, bad = 0, settled = 0, size = 0, longest = 0, members = "", names = {}, last = w.part == w.of}
  local part = tonumber(w.part)
  if part == 1 then
    c.stale = task.waiting
    return c
  end
  local f = redis.call("HMGET", k.wait .. id, "state", "entry", "epoch", "part", "ok", "bad", "settled", "size", "longest", "members",
    "digest")
  if f[1] ~= "forming" or f[2] ~= w.entry or f[3] ~= task.epoch or tonumber(f[4]) ~= part - 1 or f[11] ~= w.digest then
    return nil, {at, "INVALID", "part", "must follow on the part before it: begin again with part 1"}
  end
  c.ok, c.bad, c.settled, c.size = tonumber(f[5]), tonumber(f[6]), tonumber(f[7]), tonumber(f[8])
  c.longest, c.members = tonumber(f[9]), f[10]
  return c
end

-- answered is what the journal says of this wait, if the agent was here before.
local function answered()
  local f = redis.call("HMGET", k.journal .. id, w.entry, "entries")
  local known = f[1]
  if not known and f[2] and tonumber(w.entry) <= tonumber(f[2]) then
    return {at, "INVALID", "entry", "is before the checkpoint: this call comes late, or the checkpoint is not of here"}
  elseif not known then
    return nil
  end
  local digest, label = string.match(known, "^wait %S+ %S+ %S+ (%S+)\n([^\n]*)")
  if digest == w.digest then
    return {at, "READY", known}
  end
  return {at, "DIVERGED", label or string.match(known, "^[^\n]*")}
end

-- rest makes the agent WAITING.
local function rest(c, how, winner)
  local fields = {"state", how and "fired" or "open", "entry", w.entry, "mode", w.mode, "digest", w.digest, "label", w.label,
    "ok", c.ok, "bad", c.bad, "settled", c.settled, "all", c.all, "mask", w.mask, "size", c.total, "members", c.members,
    "losers", w.on_losers, "on_pending", w.on_pending, "on_timeout", w.on_timeout or "fail", "since", at}
  local function put(name, value)
    if value then
      fields[#fields + 1], fields[#fields + 2] = name, value
    end
  end
  put("need_ok", c.need_ok)
  put("most_bad", c.most_bad)
  put("reason", how)
  put("winner", winner)
  local ends = limited(c) -- before limit_ms is written: it computes that
  put("limit_ms", w.from == "first" and w.limit_ms)
  put("wait_deadline_at", ends and string.format("%d", ends))
  put("first_at", w.from == "first" and c.settled > 0 and at)
  redis.call("HSET", k.wait .. id, unpack(fields))

  later(k, "ZREM", k.claims .. task.worker, id)
  count(k, task.queue, "running", -1)
  count(k, task.queue, "waiting", 1)
  local key = k.task .. id
  redis.call("HDEL", key, "worker")
  redis.call("HSET", key, "status", "WAITING", "waiting", w.entry, "suspended_by", call, "journal", "1")
  if task.limit_at then
    redis.call("HSET", key, "attempt_at", task.limit_at)
  end
  local patience = redis.call("ZRANGE", k.patience .. id, 0, 0, "WITHSCORES")[2]
  local first = math.min(ends or math.huge, tonumber(patience) or math.huge)
  if first < math.huge then
    later(k, "ZADD", k.waits, id, string.format("%d", first))
    alarm(k, first)
  end
  task.status = "WAITING"
  emit(k, "all", "task_suspended", task, at, "wait_mode", w.mode, "entry", w.entry, "members", c.total,
    "wait_deadline_at", ends and string.format("%d", ends) or "")
  if how then
    k.fired[#k.fired + 1] = id
  end
  return {at, "WAITING"}
end

-- go_on answers at once: the wait is over before it has begun. An earlier attempt may have
-- left patience here, which must not meet the next wait.
local function go_on(c, how, winner)
  local losers = {}
  for _, m in ipairs(members) do
    if w.on_losers == "cancel" and not m.counted then
      losers[#losers + 1] = m
    end
  end
  table.sort(losers, function(a, b)
    return a.priority > b.priority or a.priority == b.priority and a.place < b.place
  end)
  for _, m in ipairs(losers) do
    guard(k, m.id, at, lose, k, m.id, "not_needed", at)
  end
  local settled = redis.call("LRANGE", k.settled .. id, 0, -1)
  for _, name in ipairs(c.names) do
    settled[#settled + 1] = name
  end
  local text = verdict({label = w.label, digest = w.digest, members = c.members}, how, winner, at, settled)
  redis.call("UNLINK", k.patience .. id)
  if task.waiting then
    drop(k, task)
  end
  remember(k, task, {{tonumber(w.entry), text}})
  return {at, "READY", text}
end

-- form keeps what is counted so far, for the next part.
local function form(c)
  redis.call("HSET", k.wait .. id, "state", "forming", "entry", w.entry, "epoch", task.epoch, "part", w.part, "call " .. w.part, call,
    "ok", c.ok, "bad", c.bad, "settled", c.settled, "size", c.total, "longest", c.longest, "members", c.members, "mask", w.mask,
    "digest", w.digest)
  if c.ends then -- who ends after it does not count
    redis.call("HSET", k.wait .. id, "wait_deadline_at", string.format("%d", c.ends))
  end
  redis.call("HSET", k.task .. id, "waiting", w.entry, "journal", "1")
  return {at, "MORE"}
end

local function suspend()
  local n = counted(5)
  for i = 6, 5 + 2 * n, 2 do
    w[ARGV[i]] = ARGV[i + 1]
  end
  local i = 6 + 2 * n
  n = counted(i)
  for j = i + 1, i + 3 * n, 3 do
    members[#members + 1] = {id = ARGV[j], patience = ARGV[j + 1] ~= "" and ARGV[j + 1] or nil, mask = ARGV[j + 2] ~= "" and ARGV[j + 2] or nil}
  end
  local field, why = unsound()
  if field then
    return {at, "INVALID", field, why}
  end

  if redis.call("HGET", k.task .. id, "suspended_by") == call then
    return {at, "WAITING"}
  end
  local answer
  task, answer = holder(k, id, ARGV[2], ARGV[3], "suspend", at)
  if not task then
    return {at, unpack(answer)}
  end
  if task.waiting and redis.call("HGET", k.wait .. id, "call " .. w.part) == call then
    return {at, "MORE"}
  end
  answer = answered() or distinct()
  if answer then
    return answer
  end
  local taken, next_one, told = noted(k, id, ARGV, i + 1 + 3 * n)
  if not taken then
    return {at, "INVALID", next_one, told}
  end
  if taken.made and tonumber(taken.made.entries or 0) >= tonumber(w.entry) then
    return {at, "INVALID", "checkpoint", "counts this wait among the entries before it"}
  end
  for _, entry in ipairs(taken.entries) do
    if entry[1] == tonumber(w.entry) then
      return {at, "INVALID", "entry", "is that of the wait itself: what is noted with it has other numbers"}
    end
  end
  local c, children, settled
  c, answer = begun()
  if not c then
    return answer
  end
  unlike(c.members)
  c.total = c.size + #members
  if c.total > tonumber(w.most) then
    return {at, "INVALID", "members", "are more than " .. w.most .. ": wait for groups of them, or raise the limit"}
  end
  c.need_ok, c.most_bad, c.all, field, why = thresholds(w.mode, c.total, tonumber(w.need))
  if field and c.last then
    return {at, "INVALID", field, why}
  end
  children, answer = planned(next_one)
  if children then
    settled, answer = look(children)
  end
  if answer then
    return answer
  end

  -- A key of the wrong type must be met before the first write, not after it.
  local there = redis.call("EXISTS", k.wait .. id, k.pending .. id, k.settled .. id, k.patience .. id) > 0
  if there then
    redis.call("HLEN", k.wait .. id)
    redis.call("ZCARD", k.pending .. id)
    redis.call("LLEN", k.settled .. id)
    redis.call("ZCARD", k.patience .. id)
  end
  redis.call("ZCARD", k.waits)

  -- From here on it is done; every refusal is above.
  local entry, ends, digest = string.match(redis.call("HGET", k.journal .. id, "until") or "", "^(%d+) (%w+) (.*)$")
  local again = entry == w.entry and digest == w.digest -- an attempt before this one was at this wait
  c.ends = again and tonumber(ends) or nil
  for _, child in ipairs(children) do
    admit(k, child.task, child.plan, at)
  end
  if c.stale then
    drop(k, task)
  end
  if there and w.part == "1" and not again then
    redis.call("UNLINK", k.patience .. id)
  end
  note(k, task, taken)
  local names = {c.members ~= "" and c.members or nil}
  for _, m in ipairs(members) do
    names[#names + 1] = m.name
    c.longest = math.max(c.longest, m.span)
  end
  c.members = table.concat(names, " ")
  local how, winner = weigh(settled, c)
  local open = c.total - c.settled
  if how and (w.on_losers == "keep" or w.of == "1" and open <= 100) then
    return go_on(c, how, winner)
  end
  enlist(c)
  if not c.last then
    return form(c)
  end
  return rest(c, how, winner)
end

return whole(k, at, suspend)
