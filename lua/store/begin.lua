-- begin makes tx: what one call knows, and what it still has to write. Every function that touches
-- Redis takes it first.
--
--   at, now               the call's one reading of the clock: ms as a number, and as text
--   key                   the names of all keys of the partition                 store/keys.lua
--   root                  what was read of the partition's root                  store/read_root.lua
--   failed                what could not be read or written, for the reply       store/try.lua
--   poison                tasks whose data made deciding raise, and why          store/unit.lua
--   told, timed_out, timers_fired  what the reply says of timeouts and wakes              store/tell.lua
--   strict                refuse keys of the wrong type before anything is written  store/commit.lua
--   asked, more           queues that a worker asked; whether they hold more    queue/wake.lua
--   may_cancel, may_wake  losers and agents that this call may still end, wake   wait/wake_agents.lua
--
-- The rest belongs to the unit of work that is being decided (store/renew.lua).
--
-- @use store/keys
-- @use store/now
-- @use store/renew
local function begin(root)
  local at = now(root)
  return renew({at = at, now = string.format("%d", at), key = keys(root), failed = {}, poison = {},
    told = {}, timed_out = 0, timers_fired = 0,
    may_cancel = 100, may_wake = 100})
end
