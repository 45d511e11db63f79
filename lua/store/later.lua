-- later collects writes that are neither records nor sorted sets until commit. What a task needs once its record
-- is written comes before the records. What it no longer needs is deleted after them.
--
-- @use store/try
-- @use store/tx: own
local later = {}

-- drop deletes a key before all other writes, so that the same unit can make it again.
function later.drop(tx, key)
  local drops = own(tx, "drops")
  drops[#drops + 1] = key
  if tx.lists[key] then
    own(tx, "lists")[key] = {}
  end
end

function later.before(tx, ...)
  local before = own(tx, "before")
  before[#before + 1] = {...}
end

function later.after(tx, ...)
  local after = own(tx, "after")
  after[#after + 1] = {...}
end

-- push appends to a list, before the records.
function later.push(tx, key, value)
  local lists = own(tx, "lists")
  local list = lists[key]
  if not list then
    list = {}
    lists[key], lists[#lists + 1] = list, key
  end
  list[#list + 1] = value
end

function later.write_drops(tx)
  local drops = tx.drops
  for i = 1, #drops, 4000 do
    try(tx, "UNLINK", unpack(drops, i, math.min(i + 3999, #drops)))
  end
end

function later.write_before(tx)
  for _, command in ipairs(tx.before) do
    try(tx, unpack(command))
  end
  for _, key in ipairs(tx.lists) do
    local list = tx.lists[key]
    for i = 1, #list, 4000 do
      try(tx, "RPUSH", key, unpack(list, i, math.min(i + 3999, #list)))
    end
  end
end

function later.write_after(tx)
  for _, command in ipairs(tx.after) do
    try(tx, unpack(command))
  end
end
