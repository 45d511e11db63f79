-- ends lists the ended children that a collecting agent has not received yet, in the order in which their ends were
-- written. An agent begins to collect with the journal entry "collect". Children that ended before are added then, for
-- example signals that were sent before the agent ran. Later ends are added when they are written, whatever the agent is
-- doing. The field `collects` of the agent counts the ends that it has received, so each ended child is either in that
-- count or in the list.
--
-- @use store/later
-- @use store/record
-- @use store/state: live
local ends = {}

-- most is the largest number of ends that a wait returns. The next wait returns the others at once.
local most = 500

function ends.add(tx, id, task)
  later.push(tx, tx.key.ends .. id, string.sub(task.id, #id + 2))
end

-- find_ended returns the records of ended children, in the order of their ends.
function ends.find_ended(tx, id, upto)
  local ids, tasks = redis.call("LRANGE", tx.key.children .. id, 0, upto - 1), {}
  record.load(tx, ids)
  for _, child in ipairs(ids) do
    local task = record.get(tx, child)
    if task and task.status and not live(task) then
      tasks[#tasks + 1] = task
    end
  end
  table.sort(tasks, function(a, b)
    local first, second = tonumber(a.completed_at), tonumber(b.completed_at)
    return first < second or first == second and a.id < b.id
  end)
  return tasks
end

-- begin starts collecting. check_note has refused it for an agent with more than 500 children.
function ends.begin(tx, agent)
  if agent.collects then
    return
  end
  for _, task in ipairs(ends.find_ended(tx, agent.id, most)) do
    ends.add(tx, agent.id, task)
  end
  record.set(tx, agent, "collects", "0")
end

-- kept returns the first names in the list. It raises an error if the key has the wrong type.
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

-- take removes the names that kept returns. An agent calls it once in a unit of work, because the stored list is trimmed
-- only at commit.
function ends.take(tx, id)
  local key, names = tx.key.ends .. id, ends.kept(tx, id)
  local added, stored = later.pushed(tx, key), redis.call("LLEN", key)
  local agent = record.get(tx, id)
  record.set(tx, agent, "collects", string.format("%d", tonumber(agent.collects) + #names))
  if stored > most then
    later.before(tx, "LTRIM", key, most, -1) -- before the commands that push the ends of this unit
    return names
  end
  later.drop(tx, key)
  for i = #names - stored + 1, #added do
    later.push(tx, key, added[i])
  end
  return names
end

-- forget deletes the list when the agent itself has ended.
function ends.forget(tx, id)
  later.drop(tx, tx.key.ends .. id)
end
