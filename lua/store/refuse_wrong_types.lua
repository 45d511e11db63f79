-- refuse_wrong_types raises if a key that is about to gain something is of the wrong type.
--
-- @use store/index
-- @use store/own
local function refuse_wrong_types(tx)
  -- An intersection with an empty set is empty and cheap; but Redis checks the types of all sets.
  local sets = index.gains(tx)
  if sets[1] then
    redis.call("ZINTER", string.format("%d", #sets + 1), tx.key.root .. ":none", unpack(sets))
  end
  for _, key in ipairs(tx.lists) do
    redis.call("LLEN", key)
  end
  for queue in pairs(tx.counts) do
    redis.call("HLEN", tx.key.queue .. queue)
  end
  redis.call("SCARD", tx.key.queues)
  for queue in pairs(tx.wakes) do
    own(tx, "wakes")[queue] = redis.call("LLEN", tx.key.wake .. queue)
  end
  if #tx.events > 0 then
    redis.call("XLEN", tx.key.events)
  end
end
