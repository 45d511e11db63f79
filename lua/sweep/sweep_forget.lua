-- sweep_forget frees an idempotency key whose time is up.
--
-- @use store/index
-- @use task/idempotency
local function sweep_forget(tx, _, key, clock)
  idempotency.free(tx, key)
  index.remove(tx, clock, key)
end
