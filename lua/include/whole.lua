-- whole runs what a script does, and flush after it also where it raises: what was ended
-- by then must come to its clocks, its counters and whoever waits for it.
--
-- Returns  what act returns
--
-- @include flush
-- @include complete
local function whole(k, at, act)
  local ok, answer = pcall(act)
  local failed = flush(k, at)
  if not ok then
    error(answer, 0)
  end
  complete(failed)
  return answer
end
