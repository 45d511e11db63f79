-- ends keeps which children of an agent that collects have ended, and were not given to it yet, in the order in which
-- their ends were written. An agent begins to collect with an entry "collect" of its journal. The children that have
-- ended by then are added first, such as signals that were sent before the agent ran. From then on each end is added
-- when it is written, whatever the agent does at that time. The field `collects` of the agent counts the ends that it
-- was given. So each child that has ended is either in that count or in the list.
--
-- @use store/later
-- @use store/record
-- @use store/state: live
local ends = {}

-- most is how many ends a wait hands over; the next wait hands over the others at once.
local most = 500

function ends.add(tx, id, task)
  later.push(tx, tx.key.ends .. id, string.sub(task.id, #id + 2))
end

-- ended returns the records of the children that have ended, in the order of their ends.
function ends.ended(tx, id, upto)
  local ids, all = redis.call("LRANGE", tx.key.children .. id, 0, upto - 1), {}
  record.load(tx, ids)
  for _, child in ipairs(ids) do
    local task = record.get(tx, child)
    if task and task.status and not live(task) then
      all[#all + 1] = task
    end
  end
  table.sort(all, function(a, b)
    local first, second = tonumber(a.completed_at), tonumber(b.completed_at)
    return first < second or first == second and a.id < b.id
  end)
  return all
end

-- begin has an agent collect. check_note has checked that it has at most 500 children.
function ends.begin(tx, agent)
  if agent.collects then
    return
  end
  for _, task in ipairs(ends.ended(tx, agent.id, most)) do
    ends.add(tx, agent.id, task)
  end
  record.set(tx, agent, "collects", "0")
end

-- kept returns the names of the first children in the list. It raises if the key is of the wrong type.
function ends.kept(tx, id)
  local key = tx.key.ends .. id
  local names = redis.call("LRANGE", key, 0, most - 1)
  for _, name in ipairs(later.pushed(tx, key)) do
    if #names < most then
      names[#names + 1] = name
    end
  end
  return names
end

-- take removes these ends from the list. An agent takes once in a unit of work.
function ends.take(tx, id)
  local key, names = tx.key.ends .. id, ends.kept(tx, id)
  local added, stored = later.pushed(tx, key), redis.call("LLEN", key)
  local agent = record.get(tx, id)
  record.set(tx, agent, "collects", string.format("%d", tonumber(agent.collects) + #names))
  if stored > most then
    later.before(tx, "LTRIM", key, most, -1) -- those that this unit has added come after it
    return names
  end
  later.drop(tx, key)
  for i = #names - stored + 1, #added do
    later.push(tx, key, added[i])
  end
  return names
end

-- forget removes the ends of an agent that has ended itself.
function ends.forget(tx, id)
  later.drop(tx, tx.key.ends .. id)
end
