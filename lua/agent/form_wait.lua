-- form_wait stores what is counted so far, for the next part.
--
-- @use store/own
-- @use store/record
-- @use agent/enlist
local function form_wait(tx, s, c, task)
  local w = s.wait
  local _, fields = enlist(tx, s, c)
  for _, word in ipairs({"entry", w.entry, "epoch", task.epoch, "part", w.part, "call " .. w.part, s.call,
    "size", string.format("%d", c.total), "longest", string.format("%d", c.longest), "members", c.members, "mask", w.mask,
    "digest", w.digest}) do
    fields[#fields + 1] = word
  end
  -- ends: a member that ends after it is not counted
  own(tx, "waits")[s.id] = {state = "forming", ok = c.ok, bad = c.bad, settled = c.settled, ends = c.ends, names = {}, gone = {},
    fields = fields, changed = true}
  record.set(tx, task, "waiting", w.entry)
  record.set(tx, task, "journal", "1")
  return {"MORE"}
end
