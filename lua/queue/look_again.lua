-- look_again is how many ms a worker may wait before it asks again, although no wake token came: a token is lost
-- if who took it dies before it asks. 0 says that the queues that were asked hold more. The more workers live, the
-- longer each waits, so that many that have nothing to do cost little more than a few. -1 says that the worker is
-- asked to stop (call/stop_worker.lua): it gets nothing any more.
--
--   claims  what the worker got
--
-- @use store/try
local function look_again(tx, claims)
  if tx.stopping then
    return -1
  elseif tx.more then
    return 0
  elseif claims[1] then
    return 1000
  end
  local workers = try(tx, "ZCARD", tx.key.workers) or 0
  return math.min(math.max(50 * workers, 1000), 10000)
end
