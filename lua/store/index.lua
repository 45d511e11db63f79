-- index puts off what sorted sets gain and lose until commit, so that a call costs two commands a set
-- and not one a task. The last word on a member holds.
--
-- The record decides, never the set: whoever finds an id in a set looks at its record. So an entry too
-- many misleads nobody, and commit adds before it writes records and removes after.
--
-- @use store/try
local index = {}

local function set_of(tx, key)
  local set = tx.index[key]
  if not set then
    set = {key = key, n = 0, added = 0, members = {}, score = {}}
    tx.index[key] = set
    tx.sets[#tx.sets + 1] = set
  end
  return set
end

local function put(set, member, score)
  local old = set.score[member]
  if old == nil then
    set.n = set.n + 1
    set.members[set.n] = member
  end
  if score and not old then
    set.added = set.added + 1
  elseif old and not score then
    set.added = set.added - 1
  end
  set.score[member] = score
end

-- add gives a member a score, a text.
function index.add(tx, key, score, member)
  put(set_of(tx, key), member, score)
end

function index.remove(tx, key, member)
  put(set_of(tx, key), member, false)
end

-- forget drops what was put off for a set that goes as a whole.
function index.forget(tx, key)
  if tx.index[key] then
    tx.index[key].n, tx.index[key].added, tx.index[key].members, tx.index[key].score = 0, 0, {}, {}
  end
end

-- removed tells whether this unit takes a member out of a set.
function index.removed(tx, key, member)
  return tx.index[key] ~= nil and tx.index[key].score[member] == false
end

-- removals is how many members this unit takes out of a set.
function index.removals(tx, key)
  local n = 0
  for _, score in pairs(tx.index[key] and tx.index[key].score or {}) do
    n = score and n or n + 1
  end
  return n
end

-- run sends a command about many members, as many as a command takes at a time.
local function run(tx, command, key, words, n)
  if n <= 4000 then
    try(tx, command, key, unpack(words))
    return
  end
  for i = 1, n, 4000 do
    try(tx, command, key, unpack(words, i, math.min(i + 3999, n)))
  end
end

function index.write_added(tx)
  for _, set in ipairs(tx.sets) do
    if set.added > 0 then
      local words, n, score = {}, 0, set.score
      for _, member in ipairs(set.members) do
        if score[member] then
          words[n + 1], words[n + 2] = score[member], member
          n = n + 2
        end
      end
      run(tx, "ZADD", set.key, words, n)
    end
  end
end

function index.write_removed(tx)
  for _, set in ipairs(tx.sets) do
    if set.added == 0 and set.n > 0 then
      run(tx, "ZREM", set.key, set.members, set.n)
    elseif set.added < set.n then
      local words, n, score = {}, 0, set.score
      for _, member in ipairs(set.members) do
        if not score[member] then
          n = n + 1
          words[n] = member
        end
      end
      run(tx, "ZREM", set.key, words, n)
    end
  end
end
