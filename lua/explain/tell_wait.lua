-- tell_wait adds the wait of an agent, and the next members that have not ended. A wait of the mode collect is for all
-- children: then the members are the next children, ended or not, and pending is how many have not ended.
--
--   wait     the list to which it adds names and values   answers  the list to which it adds a list for each member
--   page     from: the place behind which it continues, "" for the first; most: how many members
--
-- @use explain/ask
-- @use explain/decided
-- @use explain/lacks
-- @use explain/put
-- @use explain/put_fields
-- @use explain/scored
-- @use store/record
-- @use store/live

local told = {"state", "entry", "mode", "label", "why", "ok", "bad", "settled", "size", "need_ok", "most_bad", "all",
  "wait_deadline_at", "limit_ms", "since", "reason"}
local of_member = {"deadline_at", "until", "limit_at", "available_at", "role", "grace_at", "cancel_grace_ms", "status"}
local instants = {"deadline_at", "until", "limit_at", "grace_at", "available_at"}

-- due reports whether one of a member's instants has come, so that its end can be decided.
local function due(tx, task)
  for _, name in ipairs(instants) do
    if task[name] and (tonumber(task[name]) or tx.at) <= tx.at then
      return true
    end
  end
end

local function tell_member(tx, member, id)
  local broken = scored(tx.key.broken, id)
  local task, why = record.get(tx, id)
  if not task then
    put(member, "broken", broken or why)
    return
  end
  put(member, "broken", broken)
  for _, name in ipairs(of_member) do
    put(member, name, task[name])
  end
  put(member, "lacks", live(task) and lacks(tx, task))
  if live(task) and due(tx, task) then
    local over
    over, why = decided(tx, task)
    put(member, "over_at", over and string.format("%d", over.completed_at))
    put(member, "broken", not broken and why)
  end
end

-- pending returns the names and places of the next members, and how many have not ended.
local function pending(tx, id, page)
  local key, from = tx.key.pending .. id, page.from
  return ask("ZRANGEBYSCORE", key, from == "" and "-inf" or "(" .. from, "+inf", "WITHSCORES", "LIMIT", 0, page.most) or {}, ask("ZCARD", key)
end

-- children returns the names and places of the next children, and how many have not ended: each other one is among those
-- that the agent was given, or still in its list (wait/ends.lua).
local function children(tx, id, page)
  local some, agent, first = {}, record.get(tx, id), page.from == "" and 0 or tonumber(page.from) + 1
  for i, child in ipairs(ask("LRANGE", tx.key.children .. id, first, first + page.most - 1) or {}) do
    some[2 * i - 1], some[2 * i] = string.sub(child, #id + 2), first + i - 1
  end
  local open = tonumber(agent.children or 0) - tonumber(agent.collects or 0) - (ask("LLEN", tx.key.ends .. id) or 0)
  return some, string.format("%d", math.max(open, 0))
end

local function tell_wait(tx, id, page, wait, answers)
  local key = tx.key
  local collects = put_fields(wait, key.wait .. id, told).mode == "collect"
  if page.from == "" then
    put_fields(wait, key.wait .. id, {"members"})
  end
  local some, left = (collects and children or pending)(tx, id, page)
  put(wait, "pending", left)
  local own, ids = {"mask"}, {}
  for i = 1, #some, 2 do
    own[#own + 1], ids[#ids + 1] = "mask " .. some[i], id .. "." .. some[i]
  end
  local masks = ask("HMGET", key.wait .. id, unpack(own)) or {}
  record.load(tx, ids)
  for i = 1, #some, 2 do
    local name = some[i]
    local member = {"place", string.format("%d", tonumber(some[i + 1])), "name", name}
    put(member, "mask", masks[(i + 3) / 2] or masks[1])
    put(member, "patience", scored(key.patience .. id, name))
    tell_member(tx, member, id .. "." .. name)
    answers[#answers + 1] = member
  end
end
