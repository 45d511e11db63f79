-- repair_waiting sets how many agents of a queue wait, as the caller has counted them, if nothing has happened to the
-- queue since before it began to count.
--
--   where  the number; then seq and front of the root, and counters of the queue, as they were then; "-" for an absent one
--
-- @use store/later
local function repair_waiting(tx, _, name, where)
  local n, seen = string.match(where, "^(%d+) (.*)$")
  local words, root = {}, redis.call("HMGET", tx.key.root, "seq", "front")
  local of = redis.call("HMGET", tx.key.queue .. name, "running", "waiting", "enqueued", "completed", "failed", "cancelled")
  for _, value in ipairs({root[1], root[2], unpack(of)}) do
    words[#words + 1] = value or "-"
  end
  if not n or table.concat(words, " ") ~= seen then
    return nil, "the queue is at work: its waiting agents can be counted when it rests"
  end
  later.before(tx, "HSET", tx.key.queue .. name, "waiting", n)
  return {"count its waiting agents: " .. n}
end
