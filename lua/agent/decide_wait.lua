-- decide_wait counts the members that have ended, until the wait fires. It returns how it fires and by which member,
-- or nil. Members that ended while earlier parts were sent are counted again, so that the result is the same as in
-- one part: the first end decides, and not the first end that was counted.
--
-- @use store/later
-- @use store/record
-- @use agent/by_end
-- @use agent/collected
-- @use agent/counts_as
-- @use agent/fires

-- over reports whether the wait is over before it has begun, and how. A join fails at once if a member failed before
-- the join began.
local function over(s, c)
  return fires(c) or s.wait.mode == "all" and c.bad > 0 and "impossible"
end

-- told returns a member that ended while earlier parts were sent.
local function told(tx, s, name)
  local task, why = record.get(tx, s.id .. "." .. name)
  if not task or not task.completed_at then
    error(why or s.id .. "." .. name .. " has ended, but its record is gone", 0)
  end
  local mask = redis.call("HGET", tx.key.wait .. s.id, "mask " .. name) or s.wait.mask
  return {name = name, ended = tonumber(task.completed_at), as = counts_as(mask, task)}
end

local function add(c, m)
  c.settled = c.settled + 1
  c.ok, c.bad = c.ok + (m.as == "o" and 1 or 0), c.bad + (m.as == "b" and 1 or 0)
end

-- add_earlier adds the members that earlier parts counted, to be counted again.
local function add_earlier(tx, s, settled, c)
  local places, n = {}, -c.size
  for name in string.gmatch(c.members, "%S+") do
    n = n + 1
    places[name] = n
  end
  for _, name in ipairs(redis.call("LRANGE", tx.key.settled .. s.id, 0, -1)) do
    local m = told(tx, s, name)
    m.place = places[name]
    settled[#settled + 1] = m
  end
  later.drop(tx, tx.key.settled .. s.id)
  c.ok, c.bad, c.settled, c.recounted = 0, 0, 0, true
  by_end(settled)
end

-- decider returns the decisive member if there are too many ended members to read them all again. That is the first
-- in the order of the parts with which the wait is over, if it is among the first 500; otherwise the last member.
local function decider(tx, s, c)
  local so_far = {ok = 0, bad = 0, settled = 0, need_ok = c.need_ok, most_bad = c.most_bad, all = c.all}
  for _, name in ipairs(redis.call("LRANGE", tx.key.settled .. s.id, 0, 499)) do
    add(so_far, told(tx, s, name))
    if over(s, so_far) then
      return name
    end
  end
  return redis.call("LINDEX", tx.key.settled .. s.id, -1) or nil
end

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
    elseif not (c.ends and m.ended > c.ends) then
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
