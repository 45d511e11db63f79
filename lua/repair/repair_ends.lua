-- repair_ends adds the ends that an agent which collects was not given, and that are not in its list (wait/ends.lua).
-- The results of its waits say which ends it was given. If a checkpoint has replaced results, nothing says so any more,
-- and repair_ends adds nothing. An agent that waits for ends is given back: it comes to its wait again and gets these.
--
-- @use check/digits
-- @use store/later
-- @use store/record
-- @use store/live
-- @use task/return_claim
-- @use wait/ends

local most = 10000 -- children of an agent that a repair reads

-- handed returns the names of the children whose ends the waits have handed over, and how many they are.
local function handed(tx, id)
  local names, n = {}, 0
  local flat = redis.call("HGETALL", tx.key.journal .. id)
  for i = 1, #flat, 2 do
    local members, settled = string.match(digits(flat[i]) and flat[i + 1] or "", "^wait [^\n]*\n[^\n]*\n([^\n]*)\n([^\n]*)$")
    if members == settled then -- a wait of the mode collect lists what it has handed over in both
      for name in string.gmatch(settled or "", "%S+") do
        n = n + (names[name] and 0 or 1)
        names[name] = true
      end
    end
  end
  return names, n
end

-- kept removes from the list what is no end, or is in it twice. It returns the ends that are not in the list, by name, and
-- how many are.
local function kept(tx, r, id, all)
  local key, ended, sound = tx.key.ends .. id, {}, {}
  local listed = redis.call("LRANGE", key, 0, -1)
  for _, child in ipairs(all) do
    ended[string.sub(child.id, #id + 2)] = true
  end
  for _, name in ipairs(listed) do
    if ended[name] then
      ended[name] = nil
      sound[#sound + 1] = name
    end
  end
  if #sound < #listed then
    later.drop(tx, key)
    for _, name in ipairs(sound) do
      later.push(tx, key, name)
    end
    r[#r + 1] = "remove from ends:" .. id .. " what is no end"
  end
  return ended, #sound
end

-- wake gives an agent back that waits for ends.
local function wake(tx, r, task)
  local wait = redis.call("HMGET", tx.key.wait .. task.id, "mode", "state")
  if task.status == "WAITING" and wait[1] == "collect" and wait[2] == "open" then
    return_claim(tx, task, false)
    r[#r + 1] = "give the agent back: it comes to its wait again"
  end
end

local function repair_ends(tx, s, id)
  local task, r = record.get(tx, id), {}
  if not task or not task.collects or not live(task) then
    return r
  elseif redis.call("LLEN", tx.key.children .. id) > most then
    return nil, "it has more than " .. most .. " children, which is too many to compare with its ends: cancel the agent"
  end
  local all = ends.ended(tx, id, most)
  s.size = s.size + 100 * #all
  local others, n = kept(tx, r, id, all)
  if #all <= n + tonumber(task.collects) then
    return r
  end
  local names, count = handed(tx, id)
  if count ~= tonumber(task.collects) then
    return r, "its checkpoint replaced the results of waits, so nothing says which ends it was given: cancel the agent"
  end
  for _, child in ipairs(all) do
    local name = string.sub(child.id, #id + 2)
    if others[name] and not names[name] then
      ends.add(tx, id, child)
      r[#r + 1] = "add " .. name .. " to ends:" .. id
    end
  end
  wake(tx, r, task)
  return r
end
