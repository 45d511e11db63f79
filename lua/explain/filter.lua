-- Tasks of an index that match a filter.
--
-- @use check/values: whole
-- @use store/state: held_set, live
-- @use task/body

local filters = " kind queue owner status timed_out unbounded since before error "
local instants = {since = true, before = true}

-- read_filter reads a filter from the arguments of a call, beginning with argument `from`. It raises an error if they are
-- invalid.
local function read_filter(argv, from)
  local filter = {}
  for i = from, #argv, 2 do
    local name, value = argv[i], argv[i + 1]
    local valid = string.find(name, "^[%a_]+$") and string.find(filters, " " .. name .. " ", 1, true)
    if not valid or not value or value == "" or instants[name] and not whole(value) then
      error("argument " .. i .. " must be a name of a filter, and its value must follow", 0)
    end
    filter[name] = instants[name] and tonumber(value) or value
  end
  if filter.status then
    filter.statuses = {}
    for status in string.gmatch(filter.status, "%u+") do
      filter.statuses[status] = true
    end
  end
  return filter
end

local function has_error(tx, task, text)
  local stored = task.completed_at and task.status ~= "COMPLETED" and body(tx, task)
  return stored and string.find(stored, text, 1, true) or task.last_error and string.find(task.last_error, text, 1, true)
end

-- touched returns the instant of a task's end, or of its creation if it is live.
local function touched(task)
  return math.max(tonumber(task.created_at), tonumber(task.completed_at or 0))
end

-- unbounded reports whether nothing ends a live task by its time: it has no deadline, its own or an owner's, and it is not a timer.
local function unbounded(task)
  return live(task) and not task.deadline_at and not task["until"] and not task.grace_at and task.role ~= "timer"
end

-- matches reports whether a task passes all conditions of a filter.
--
--   filter  kind, queue, owner; statuses: the set of them; timed_out; since and before: instants as numbers; error:
--           part of its error, or of the error of its newest attempt
local function matches(tx, task, filter)
  return (not filter.kind or task.kind == filter.kind) and (not filter.queue or task.queue == filter.queue) and
    (not filter.owner or task.owner == filter.owner) and (not filter.statuses or filter.statuses[task.status]) and
    (not filter.timed_out or task.timed_out) and (not filter.unbounded or unbounded(task)) and
    (not filter.since or touched(task) >= filter.since) and (not filter.before or touched(task) < filter.before) and
    (not filter.error or has_error(tx, task, filter.error))
end

-- listed_in returns the index in which the call list returns a task, or nil. A task can be in several indexes, and must not be
-- returned several times.
local function listed_in(tx, task)
  local status = task.status
  if status == "RUNNING" then
    return "claims"
  elseif not live(task) then
    return status == "COMPLETED" and "retained" or "dead"
  elseif status == "PENDING" and task.available_at then
    return "delayed"
  elseif held_set(task) then
    return "held"
  elseif status == "PENDING" and not task.role then
    return "ready"
  elseif status == "WAITING" and redis.call("ZSCORE", tx.key.waits, task.id) then
    return "waits"
  elseif task.limit_at or task.warn_at or task.grace_at then
    return "limits"
  elseif task.deadline_at then
    return "deadlines"
  end
end

-- before reports whether a text sorts before another, byte by byte, as Redis sorts members with the same score. The operator
-- of Lua would use the locale of the server.
local function before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

-- rank_behind returns the rank behind a score and an id, counted from the highest score. The entry itself may be gone, so
-- ZREVRANK cannot answer.
local function rank_behind(key, score, id)
  local low = redis.call("ZCOUNT", key, "(" .. score, "+inf")
  local high = low + redis.call("ZCOUNT", key, score, score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = redis.call("ZRANGE", key, middle, middle, "REV")[1]
    if not member or before(member, id) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

local function newest_of_set(key, behind, most)
  local from = behind and rank_behind(key, behind.score, behind.id) or 0
  local words = redis.call("ZRANGE", key, from, from + most, "REV", "WITHSCORES")
  local ids, scores = {}, {}
  for i = 1, math.min(most, #words / 2) do
    ids[i], scores[i] = words[2 * i - 1], words[2 * i]
  end
  return ids, scores, #words / 2 > most
end

-- newest_of_list can return an entry twice: the list of children loses its first entries while its owner drains.
local function newest_of_list(key, behind, most)
  local length = redis.call("LLEN", key)
  local last = math.min(behind and tonumber(behind.score) or length, length) - 1
  local first = math.max(last - most + 1, 0)
  local words = last >= 0 and redis.call("LRANGE", key, first, last) or {}
  local ids, scores = {}, {}
  for i = #words, 1, -1 do
    ids[#ids + 1], scores[#scores + 1] = words[i], string.format("%d", first + i - 1)
  end
  return ids, scores, first > 0
end

-- newest reads an index from its newest entry on: a sorted set from the highest score, a list from its end.
--
--   behind  score and id of the entry behind which to begin; nil at the beginning. In a list, the score is the position
--   most    how many entries
--
-- Returns  ids, scores as texts, and whether there are more
local function newest(key, is_list, behind, most)
  return (is_list and newest_of_list or newest_of_set)(key, behind, most)
end
