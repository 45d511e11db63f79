-- repair_waiting sets counters of the waiting agents of a queue, as the caller has counted them, if nothing has happened to
-- the queue since before it began to count.
--
--   where  the counters, name=number, with commas between them: waiting, bounded_<mode>, unbounded_<mode>; then seq and front
--          of the root, and counters of the queue, as they were then; "-" for an absent one
--
-- @use store/later
local function repair_waiting(tx, _, name, where)
  local right, seen = string.match(where, "^([%w_=,]+) (.*)$")
  local words, root = {}, redis.call("HMGET", tx.key.root, "seq", "front")
  local of = redis.call("HMGET", tx.key.queue .. name, "running", "waiting", "enqueued", "completed", "failed", "cancelled")
  for _, value in ipairs({root[1], root[2], unpack(of)}) do
    words[#words + 1] = value or "-"
  end
  if not right or table.concat(words, " ") ~= seen then
    return nil, "the queue is at work: its waiting agents can be counted when it rests"
  end
  local r = {}
  for counter, n in string.gmatch(right, "([%l_]+)=(%d+)") do
    if counter == "waiting" or string.find(counter, "^u?n?bounded_%l") then
      later.before(tx, "HSET", tx.key.queue .. name, counter, n)
      r[#r + 1] = "count its waiting agents: " .. counter .. " " .. n
    end
  end
  return r
end
