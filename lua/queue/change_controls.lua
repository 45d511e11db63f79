-- change_controls writes the controls that differ from those of the queue, and reports whether any does. So a
-- repeat after a lost reply does not fill the bucket or write an event again.
--
--   about  the key of the queue's record
--
-- @use store/later
local function change_controls(tx, asked, about)
  local changed, bucket = false, false
  for name, value in pairs(asked) do
    local new = (redis.call("HGET", about, name) or "") ~= value
    if new and value == "" then
      later.before(tx, "HDEL", about, name)
    elseif new then
      later.before(tx, "HSET", about, name, value)
    end
    changed = changed or new
    bucket = bucket or new and (name == "rate" or name == "per_ms" or name == "burst")
  end
  if bucket then
    later.before(tx, "HDEL", about, "full_at") -- a new bucket is full
  end
  return changed
end
