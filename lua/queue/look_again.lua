-- look_again returns after how many ms a worker must fetch again if no wake token comes. A token is lost if the
-- worker that took it dies before it fetches. 0: the requested queues hold more. The more workers live, the longer
-- each waits, so many idle workers cost little more than a few. -1: the worker must stop (call/stop_worker.lua), and
-- gets no more tasks. -2: the seq of the request, or a later one, was used in this partition before, so the claims are
-- those of a repeat; fetch again after 1000 ms.
--
--   claims  what the worker got
--
-- @use store/try
local function look_again(tx, claims)
  if tx.stopping then
    return -1
  elseif tx.repeated then
    return -2
  elseif tx.more then
    return 0
  elseif claims[1] then
    return 1000
  end
  local workers = try(tx, "ZCARD", tx.key.workers) or 0
  return math.min(math.max(50 * workers, 1000), 10000)
end
