-- read_wait reads what is needed to count members in an agent's wait. A unit of work reads a wait once and
-- counts in the table; wait/write_waits.lua writes it.
--
--   state   open, forming (parts are still being sent), fired; false if there is no wait
--   names   members whose end this unit has counted
--   gone    members that this unit has taken out of the pending ones, by name
--   fields  other fields to write: name, value, …
--
-- Returns the wait, or nil and why it cannot be used
--
-- @use store/attempt
-- @use store/own
-- @use store/record

-- waits reports whether an agent is WAITING in its record.
local function waits(tx, id)
  local agent = record.get(tx, id)
  return agent and agent.status == "WAITING"
end

local function read_wait(tx, id)
  local w = tx.waits[id]
  if w then
    return not w.broken and w or nil, w.broken
  end
  local f = attempt("HMGET", tx.key.wait .. id, "state", "wait_deadline_at", "ok", "bad", "settled", "need_ok",
    "most_bad", "all", "mask", "masks", "limit_ms", "first_at", "since", "patient", "size", "mode")
  if f.err then
    w = {broken = f.err}
  else
    w = {state = f[1], ends = tonumber(f[2] or nil), ok = tonumber(f[3] or nil), bad = tonumber(f[4] or nil),
      settled = tonumber(f[5] or nil), need_ok = tonumber(f[6] or nil), most_bad = tonumber(f[7] or nil),
      all = tonumber(f[8] or nil), mask = f[9], masks = f[10], limit_ms = f[11], first_at = f[12],
      since = tonumber(f[13] or nil), patient = f[14], size = tonumber(f[15] or nil) or math.huge, mode = f[16],
      names = {}, gone = {}, fields = {}, changed = false}
    if w.state and not (w.ok and w.bad and w.settled and w.mask and (w.all or w.state == "forming")) then
      w = {broken = tx.key.wait .. id .. " has no counters"}
    elseif w.state ~= "open" and w.state ~= "fired" and waits(tx, id) then
      w = {broken = "it is WAITING, but its wait is lost"}
    end
  end
  own(tx, "waits")[id] = w
  return not w.broken and w or nil, w.broken
end
