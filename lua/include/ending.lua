-- ending says how a live task that is out of time ends, or nil if it is not.
-- It reads and never writes. Whatever instant came first decides: an ancestor's
-- end, the inherited until, its own deadline, the limit on its line or attempt;
-- of equal ones the outermost. So reapers, their order and their lag do not matter.
--
-- An instant is out of time when it is before now, strictly: at its deadline a
-- task is still alive.
--
-- @include drains
local function ending(k, task, at)
  local first, kind, ancestor

  -- Outermost first, so that a later one must be strictly earlier to win.
  local dot = string.find(task.id, ".", 1, true)
  while dot do
    local prefix = string.sub(task.id, 1, dot - 1)
    local ended = drains(k, prefix)
    if ended and (not first or ended < first) then
      first, kind, ancestor = ended, "ancestor", prefix
    end
    dot = string.find(task.id, ".", dot + 1, true)
  end
  local bound = tonumber(task["until"])
  if bound and bound < at and (not first or bound < first) then
    first, kind = bound, "workflow"
  end
  local deadline = tonumber(task.deadline_at)
  if deadline and deadline < at and (not first or deadline < first) then
    first, kind = deadline, "execution"
  end
  local limit_at = tonumber(task.limit_at)
  if limit_at and limit_at < at and (not first or limit_at < first) then
    first, kind = limit_at, task.status == "PENDING" and "queue" or "attempt"
  end
  if not first then
    return nil
  end

  if kind == "ancestor" then
    local how = redis.call("HMGET", k.task .. ancestor, "timed_out")
    if not how[1] then
      return {status = "CANCELLED", reason = "owner_ended", error = "Owner ended", completed_at = first}
    end
    kind = "workflow"
  end
  return {status = "FAILED", reason = "timeout", timeout_type = kind,
    error = "Task exceeded deadline", completed_at = first}
end
