-- repair_kin adds a child to the children of its owner. If the owner has ended and the child lives, the owner is put on
-- the clock `draining`, so that the sweep ends the child.
--
--   where  has the word children or draining if the caller did not find the child in the whole list. The call reads the
--          last 200 entries, so that a repeat adds nothing
--
-- @use check/has_word
-- @use store/later
-- @use store/record
-- @use task/left_behind
-- @use store/live
-- @use repair/mend

-- add appends a child to the list of its owner, once.
local function add(tx, s, r, task)
  local listed = s.listed[task.owner]
  if not listed then
    listed = {}
    for _, id in ipairs(redis.call("LRANGE", tx.key.children .. task.owner, -200, -1)) do
      listed[id] = true
    end
    s.listed[task.owner] = listed
  end
  if not listed[task.id] then
    listed[task.id] = true
    later.push(tx, tx.key.children .. task.owner, task.id)
    r[#r + 1] = "add to children:" .. task.owner
  end
end

local function repair_kin(tx, s, r, task, where)
  local owner = task.owner and record.get(tx, task.owner)
  if not owner or not owner.status then
    return
  end
  if has_word(where, "children") and live(owner) and not left_behind(tx, task) then
    add(tx, s, r, task)
  elseif live(task) and not live(owner) then
    if has_word(where, "draining") then
      add(tx, s, r, task)
    end
    mend.must(tx, r, "draining", owner.id, owner.completed_at)
  end
end
