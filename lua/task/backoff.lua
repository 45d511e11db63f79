-- backoff returns the ms between a failed attempt and the next one: backoff_ms, doubled by each retry if it is
-- exponential, at most backoff_max_ms or a day, less a part of up to `jitter` percent. That part depends on the id
-- and the retry, so that many tasks that failed together are retried at different instants, and a repeated
-- call computes the same one. (The random numbers of Redis start again in every script.)
local function backoff(task, retries)
  local span = tonumber(task.backoff_ms or 0)
  if task.backoff == "exponential" then
    span = span * 2 ^ retries
  end
  span = math.min(span, tonumber(task.backoff_max_ms or 86400000))
  if task.jitter then
    local drawn = tonumber(string.sub(redis.sha1hex(task.id .. ":" .. retries), 1, 8), 16) / 4294967296
    span = span * (1 - drawn * task.jitter / 100)
  end
  return math.floor(span)
end
