-- ends keeps which children of an agent that collects have ended, and were not given to it yet, in the order in which
-- their ends were written. An agent begins to collect with an entry "collect" of its journal, or with its first wait of
-- the mode collect. From then on each end is added when it is written, whatever the agent does at that time.
--
-- @use store/later
local ends = {}

-- most is how many ends a wait hands over; the next wait hands over the others at once.
local most = 500

function ends.add(tx, id, task)
  later.push(tx, tx.key.ends .. id, string.sub(task.id, #id + 2))
end

-- any reports whether there are ends. It raises if the key is of the wrong type.
function ends.any(tx, id)
  local key = tx.key.ends .. id
  local added = tx.lists[key]
  return added and added[1] ~= nil or redis.call("LLEN", key) > 0
end

-- take removes the first ends, and returns the names of the children. An agent takes once in a unit of work.
function ends.take(tx, id)
  local key = tx.key.ends .. id
  local names, added = redis.call("LRANGE", key, 0, most - 1), tx.lists[key] or {}
  if #names == most then
    later.before(tx, "LTRIM", key, most, -1)
    return names
  end
  later.drop(tx, key)
  for _, name in ipairs(added) do
    if #names < most then
      names[#names + 1] = name
    else
      later.push(tx, key, name)
    end
  end
  return names
end

-- forget removes the ends of an agent that has ended itself.
function ends.forget(tx, id)
  later.drop(tx, tx.key.ends .. id)
end
