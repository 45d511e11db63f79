-- Sorted sets.
--
-- @use store/try

-- index collects what sorted sets gain and lose until commit, so that a unit costs two commands a set and not one a
-- task. The last change of a member counts.
--
-- The record decides, never the set: a caller that finds an id in a set reads its record. So an extra entry misleads
-- no caller, and commit adds entries before it writes records and removes entries after that.
local index = {}

local function set_of(tx, key)
  local set = tx.sets[key]
  if not set then
    set = {key = key, n = 0, members = {}, score = {}, new = {}, news = 0, gone = false}
    local sets = tx.sets
    sets[key], sets[#sets + 1] = set, set -- by key, and in the order of their first changes
  end
  return set
end

local function put(tx, key, member, score)
  local set = tx.sets[key] or set_of(tx, key)
  local scores = set.score
  if scores[member] == nil then
    local n = set.n + 1
    set.n, set.members[n] = n, member
  end
  scores[member] = score
end

-- add_new gives a score to a member that no set had before this unit: a new task.
function index.add_new(tx, key, score, member)
  local set = set_of(tx, key)
  local n, new = set.news, set.new
  new[n + 1], new[n + 2] = score, member
  set.news = n + 2
end

-- add gives a member a score, which is a text.
function index.add(tx, key, score, member)
  put(tx, key, member, score)
end

function index.remove(tx, key, member)
  put(tx, key, member, false)
end

-- forget discards the changes of a set that is deleted.
function index.forget(tx, key)
  local set = tx.sets[key]
  if set then
    set.n, set.news, set.members, set.score, set.new = 0, 0, {}, {}, {}
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
local function run(tx, command, key, words, n)
  if n <= 4000 then
    try(tx, command, key, unpack(words))
    return
  end
  for i = 1, n, 4000 do
    try(tx, command, key, unpack(words, i, math.min(i + 3999, n)))
  end
end

-- sort separates what a set gains from what it loses. What it gains is appended to its new members.
local function sort(set)
  local words, n, gone, m, scores = set.new, set.news, {}, 0, set.score
  for _, member in ipairs(set.members) do
    local score = scores[member]
    if score then
      words[n + 1], words[n + 2] = score, member
      n = n + 2
    else
      m = m + 1
      gone[m] = member
    end
  end
  set.news, set.gone = n, m > 0 and gone
end

-- prepare sorts the changes of all sets. It comes before the functions below.
function index.prepare(tx)
  for _, set in ipairs(tx.sets) do
    sort(set)
  end
end

-- gains returns the keys of the sets that gain something.
function index.gains(tx)
  local keys = {}
  for _, set in ipairs(tx.sets) do
    if set.news > 0 then
      keys[#keys + 1] = set.key
    end
  end
  return keys
end

function index.write_added(tx)
  for _, set in ipairs(tx.sets) do
    if set.news > 0 then
      run(tx, "ZADD", set.key, set.new, set.news)
    end
  end
end

function index.write_removed(tx)
  for _, set in ipairs(tx.sets) do
    if set.gone then
      run(tx, "ZREM", set.key, set.gone, #set.gone)
    end
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
