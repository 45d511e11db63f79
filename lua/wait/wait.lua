-- The state of an agent's wait, and what is counted in it.
--
-- @use queue/queue: count
-- @use store/index
-- @use store/later
-- @use store/record: owner_state, record
-- @use store/try: attempt, try

-- waits returns the waits that a unit of work has read or changed:
--
--   of        the waits, by agent
--   fired     the agents whose wait has fired, in the order in which they did
--   noted     ended members by owner, and the owners in the order of their first end
--   journals  changes of journals, by agent                                    wait/journal.lua
local function waits(tx)
  local mine = tx.waits
  if not mine then
    mine = {of = {}, fired = {}, noted = {}, journals = {}}
    tx.waits = mine
  end
  return mine
end

-- fire notes that the wait of an agent has fired.
local function fire(tx, id)
  local fired = waits(tx).fired
  fired[#fired + 1] = id
end

-- is_waiting reports whether an agent is WAITING in its record.
local function is_waiting(tx, id)
  local agent = record.get(tx, id)
  return agent and agent.status == "WAITING"
end

-- read_wait reads the counters of an agent's wait. A unit of work reads a wait once and changes the table; write_waits
-- stores it.
--
--   state   open, forming (parts are still being sent), fired; false if there is no wait
--   names   members whose end this unit has counted
--   gone    members that this unit has removed from the pending members, by name
--   fields  other fields to write: name, value, …
--
-- Returns the wait; or nil and the error of a damaged wait
local function read_wait(tx, id)
  local by_agent = (tx.waits or waits(tx)).of
  local w = by_agent[id]
  if w then
    return not w.broken and w or nil, w.broken
  end
  local f = attempt("HMGET", tx.key.wait .. id, "state", "wait_deadline_at", "ok", "bad", "settled", "need_ok",
    "most_bad", "all", "mask", "masks", "limit_ms", "first_at", "since", "patient", "size", "mode")
  if f.err then
    w = {broken = f.err}
  else
    w = {state = f[1], ends = tonumber(f[2]), ok = tonumber(f[3]), bad = tonumber(f[4]),
      settled = tonumber(f[5]), need_ok = tonumber(f[6]), most_bad = tonumber(f[7]),
      all = tonumber(f[8]), mask = f[9], masks = f[10], limit_ms = f[11], first_at = f[12],
      since = tonumber(f[13]), patient = f[14], size = tonumber(f[15]) or math.huge, mode = f[16],
      names = {}, gone = {}, fields = {}, changed = false}
    if w.state and not (w.ok and w.bad and w.settled and w.mask and (w.all or w.state == "forming")) then
      w = {broken = tx.key.wait .. id .. " has no counters"}
    elseif w.state ~= "open" and w.state ~= "fired" and is_waiting(tx, id) then
      w = {broken = "it is WAITING, but its wait is lost"}
    end
  end
  by_agent[id] = w
  return not w.broken and w or nil, w.broken
end

-- count_end notes the end of a member. The ends of a unit are counted together when it finishes, because their instants
-- decide the order and not the order of the writes (agent/wake_agents.lua).
local function count_end(tx, task, owner)
  read_wait(tx, owner.id)
  local noted, w = tx.waits.noted, tx.waits.of[owner.id]
  local ends = noted[owner.id]
  if not ends then
    noted[#noted + 1] = owner.id
  end
  if not ends or ends.wait ~= w then -- earlier ends belong to a wait that is forgotten
    ends = {wait = w}
    noted[owner.id] = ends
  end
  ends[#ends + 1] = task.id
end

-- forget_wait deletes the wait of an agent. Later ends of members are not counted. The members' own limits are kept until
-- the agent ends or leaves this wait (agent/wake_agents.lua), because its next attempt can come to the same wait.
local function forget_wait(tx, task)
  local key = tx.key
  for _, name in ipairs({key.wait .. task.id, key.pending .. task.id, key.settled .. task.id}) do
    later.drop(tx, name)
    index.forget(tx, name)
  end
  waits(tx).of[task.id] = {state = false, names = {}, gone = {}, fields = {}}
  record.set(tx, task, "waiting", nil)
end

-- stop_waiting removes a WAITING agent from the clock of waits and from two counters of its queue: that of waiting agents, and
-- the one that the field `counted_as` names (agent/suspend.lua). Agents that an older version suspended lack the field.
local function stop_waiting(tx, agent)
  index.remove(tx, tx.key.waits, agent.id)
  count.add(tx, agent.queue, "waiting", -1)
  if agent.counted_as then
    count.add(tx, agent.queue, agent.counted_as, -1)
    record.set(tx, agent, "counted_as", nil)
  end
end

-- write_waits writes the changed waits: one command per wait and not per end, because a batch can end many members of the
-- same wait.
local function write_waits(tx)
  for id, w in pairs(tx.waits.of) do
    if w.changed then
      local words, n = w.fields, #w.fields
      local function put(name, value)
        if value then
          words[n + 1], words[n + 2] = name, value
          n = n + 2
        end
      end
      put("state", w.state)
      for _, name in ipairs({"ok", "bad", "settled"}) do
        put(name, string.format("%d", w[name]))
      end
      put("reason", w.reason)
      put("winner", w.winner)
      put("fired_at", w.fired_at and string.format("%d", w.fired_at))
      put("first_at", w.first_at)
      put("losers", w.losers)
      put("wait_deadline_at", w.ends and string.format("%d", w.ends))
      try(tx, "HSET", tx.key.wait .. id, unpack(words))
    end
  end
end

-- score returns the score of a child in one of the sets of its owner's wait, or nil.
local function score(tx, key, name)
  local answer = not index.removed(tx, key, name) and attempt("ZSCORE", key, name)
  return type(answer) == "string" and tonumber(answer) or nil
end

-- patience_end returns the instant at which the wait of its owner cancels a child, or nil. It is the child's own limit in
-- that wait, if the wait is open and does not end before. A running child with a grace does not end by this limit, because
-- cancel_member asks its handler to stop first.
--
-- An earlier attempt of the owner may have left limits of children that are no members of this wait. They are ignored.
local function patience_end(tx, task)
  local owner = not task.cancel_at and not (task.status == "RUNNING" and task.cancel_grace_ms) and owner_state(tx, task)
  local w = owner and owner.waiting and read_wait(tx, owner.id)
  if w and w.state == "open" and w.patient then
    local name = string.sub(task.id, #owner.id + 2)
    local instant = not w.gone[name] and score(tx, tx.key.patience .. owner.id, name)
    if instant and not (w.ends and w.ends < instant) and score(tx, tx.key.pending .. owner.id, name) then
      return instant
    end
  end
end
