-- later collects writes that are neither records nor sorted sets until commit. What a task needs once its record
-- is written comes before the records. What it no longer needs is deleted after them.
--
-- @use store/try
local later = {}

local function own(tx)
  local mine = tx.later
  if not mine then
    mine = {drops = {}, before = {}, lists = {}, after = {}}
    tx.later = mine
  end
  return mine
end

-- drop deletes a key before all other writes, so that the same unit can make it again.
function later.drop(tx, key)
  local mine = own(tx)
  mine.drops[#mine.drops + 1] = key
  if mine.lists[key] then
    mine.lists[key] = {}
  end
end

function later.before(tx, ...)
  local before = (tx.later or own(tx)).before
  before[#before + 1] = {...}
end

function later.after(tx, ...)
  local after = (tx.later or own(tx)).after
  after[#after + 1] = {...}
end

-- push appends to a list, before the records.
function later.push(tx, key, value)
  local lists = (tx.later or own(tx)).lists
  local list = lists[key]
  if not list then
    list = {}
    lists[key], lists[#lists + 1] = list, key
  end
  list[#list + 1] = value
end

-- pushed returns what this unit appends to a list.
function later.pushed(tx, key)
  return tx.later and tx.later.lists[key] or {}
end

function later.write_drops(tx)
  local drops = tx.later.drops
  for i = 1, #drops, 4000 do
    try(tx, "UNLINK", unpack(drops, i, math.min(i + 3999, #drops)))
  end
end

function later.write_before(tx)
  local mine = tx.later
  for _, command in ipairs(mine.before) do
    try(tx, unpack(command))
  end
  for _, key in ipairs(mine.lists) do
    local list = mine.lists[key]
    for i = 1, #list, 4000 do
      try(tx, "RPUSH", key, unpack(list, i, math.min(i + 3999, #list)))
    end
  end
end

function later.write_after(tx)
  for _, command in ipairs(tx.later.after) do
    try(tx, unpack(command))
  end
end
