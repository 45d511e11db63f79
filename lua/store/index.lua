-- Sorted sets.
--
-- @use store/try

-- index collects what sorted sets gain and lose until commit, so that a unit costs two commands a set and not one a
-- task. The last change of a member counts.
--
-- The record decides, never the set: a caller that finds an id in a set reads its record. So an extra entry misleads
-- no caller, and commit adds entries before it writes records and removes entries after that.
local index = {}

-- own makes what a unit of work changes of a set:
--
--   score  the last score of each member; false: the set loses it
--   new    what the set gains, as words of ZADD
--   gone   the members that it loses                      from prepare on
local function own(tx, key)
  local sets, set = tx.sets, {score = {}, new = {}, gone = false}
  sets[key], sets[#sets + 1] = set, key -- the keys are in the order of their first changes
  return set
end

-- add_new gives a score to a member that no set had before this unit: a new task.
function index.add_new(tx, key, score, member)
  local new = (tx.sets[key] or own(tx, key)).new
  local n = #new
  new[n + 1], new[n + 2] = score, member
end

-- add gives a member a score, which is a text.
function index.add(tx, key, score, member)
  local set = tx.sets[key] or own(tx, key)
  set.score[member] = score
end

function index.remove(tx, key, member)
  local set = tx.sets[key] or own(tx, key)
  set.score[member] = false
end

-- forget discards the changes of a set that is deleted.
function index.forget(tx, key)
  local set = tx.sets[key]
  if set then
    set.score, set.new = {}, {}
  end
end

-- removed reports whether this unit takes a member out of a set.
function index.removed(tx, key, member)
  return tx.sets[key] ~= nil and tx.sets[key].score[member] == false
end

-- removals returns how many members this unit takes out of a set.
function index.removals(tx, key)
  local n = 0
  for _, score in pairs(tx.sets[key] and tx.sets[key].score or {}) do
    n = score and n or n + 1
  end
  return n
end

-- run sends a command with many members, 4,000 arguments at a time.
local function run(tx, command, key, words)
  if #words <= 4000 then
    try(tx, command, key, unpack(words))
    return
  end
  for i = 1, #words, 4000 do
    try(tx, command, key, unpack(words, i, math.min(i + 3999, #words)))
  end
end

-- prepare separates what sets gain from what they lose. It returns the keys of the sets that gain something, and of those
-- that lose something.
function index.prepare(tx)
  local gains, loses = {}, {}
  for _, key in ipairs(tx.sets) do
    local set = tx.sets[key]
    local new, gone = set.new, {}
    for member, score in pairs(set.score) do
      if score then
        new[#new + 1], new[#new + 2] = score, member
      else
        gone[#gone + 1] = member
      end
    end
    set.gone = gone
    if new[1] then
      gains[#gains + 1] = key
    end
    if gone[1] then
      loses[#loses + 1] = key
    end
  end
  return gains, loses
end

function index.write_added(tx, gains)
  for _, key in ipairs(gains) do
    run(tx, "ZADD", key, tx.sets[key].new)
  end
end

function index.write_removed(tx, loses)
  for _, key in ipairs(loses) do
    run(tx, "ZREM", key, tx.sets[key].gone)
  end
end

-- new_score returns the score that a member of a sorted set has after this unit, or nil if it has none then. A member
-- that index.add_new adds has none yet.
local function new_score(tx, key, member)
  local score = tx.sets[key] and tx.sets[key].score[member]
  if score == nil then
    score = redis.call("ZSCORE", key, member)
  end
  return score or nil
end
