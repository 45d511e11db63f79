-- backoff is the ms between a failed attempt and the next one: backoff_ms, doubled by each retry if it
-- is exponential, a day or backoff_max_ms at the most, less a part of up to `jitter` percent. That part
-- is drawn from the id and the retry, so that a thousand tasks that failed together come back apart, and
-- a repeat of a call draws the same one. (The random numbers of Redis begin anew in every script.)
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
