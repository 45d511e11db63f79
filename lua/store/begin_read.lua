-- begin_read begins a call that reads nothing of the root but the version of the records.
--
-- @use store/begin
-- @use store/keys
-- @use store/supported
local function begin_read(root)
  local tx = begin(root)
  supported(root, redis.call("HGET", root, "version"))
  keys.keep(tx.key)
  return tx
end
