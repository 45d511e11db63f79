-- read_root reads what a call needs of the partition's root: the level of events, the last places given
-- in line, the number of events, whether any queue is controlled, when the reaper sweeps next, whether ends
-- are counted by kind, the progress of a recount of running tasks (queue/recount_running.lua), the least
-- number of a new task (task/incarnation.lua), and the defaults of kinds. It raises if the namespace was never opened, or has a version that this library does not support.
--
--   kinds  the kinds whose defaults the call will need, or nil
--
-- @use store/keys
-- @use store/supported
local function read_root(tx, kinds)
  local fields = {"version", "events", "seq", "front", "controlled", "armed", "event_count", "event_bytes", "figures", "recounted", "number"}
  for i, kind in ipairs(kinds or {}) do
    fields[11 + i] = #kind <= 128 and "kind:" .. kind or "kind:" -- a longer one is refused
  end
  local values = redis.call("HMGET", tx.key.root, unpack(fields))
  supported(tx.key.root, values[1])
  keys.keep(tx.key)
  tx.root = {level = values[2] or "terminal", seq = tonumber(values[3] or 0), front = tonumber(values[4] or 0),
    controlled = values[5], armed = tonumber(values[6] or nil), event_count = tonumber(values[7] or nil) or 0,
    event_bytes = tonumber(values[8] or nil) or 0, figures = values[9] ~= "off", recounted = values[10],
    number = tonumber(values[11] or nil) or 0, defaults = {}}
  for i, kind in ipairs(kinds or {}) do
    tx.root.defaults[kind] = values[11 + i] or ""
  end
  return tx
end
