-- ending says how a live task that is out of time ends, or nil if it is not.
-- It reads and never writes. Whatever instant came first decides: an ancestor's
-- end, the inherited until, its own deadline, the limit on its line or attempt, the
-- end of its grace, a timer's own instant; of equal ones the outermost. So reapers,
-- their order and their lag do not matter.
--
-- An instant is out of time when it is before now, strictly: at its deadline a task
-- is still alive, and a timer that is due at it fires. The limit of an attempt that
-- is to be retried ends nothing (overdue.lua).
--
-- @include drains
-- @include attempted
-- @include again
-- @include cancelled
local function ending(k, task, at)
  local first, kind, ancestor

  -- Outermost first, so that a later one must be strictly earlier to win. Ancestry
  -- begins after the last bang (owner.lua).
  local dot = string.find(task.id, ".", 1, true)
  if dot then
    local bang = string.find(task.id, "![^!]*$")
    dot = string.find(task.id, ".", bang or 1, true)
  end
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
    if not attempted(task) then
      first, kind = limit_at, "queue"
    elseif not again(task, "timeout", limit_at) then
      first, kind = limit_at, "attempt"
    end
  end
  local grace = tonumber(task.grace_at)
  if grace and grace < at and (not first or grace < first) then
    first, kind = grace, "grace"
  end
  if task.role == "timer" then
    local fires = tonumber(task.available_at)
    if fires <= at and (not first or fires < first or fires == first and kind ~= "ancestor") then
      return {status = "COMPLETED", result = "", completed_at = fires, fields = {}}
    end
  end
  if not first then
    return nil
  end

  if task.cancel_at then
    local over = cancelled(task.cancel_reason)
    over.completed_at = first
    return over
  end
  if kind == "ancestor" then
    local how = redis.call("HMGET", k.task .. ancestor, "timed_out")
    if not how[1] then
      return {status = "CANCELLED", reason = "owner_ended", error = "Owner ended", completed_at = first}
    end
    kind = "workflow"
  end
  local over = {status = "FAILED", reason = "timeout", timeout_type = kind,
    error = "Task exceeded deadline", completed_at = first}
  if kind == "execution" and task.on_deadline == "fail" then
    over.error = "Workflow exceeded timeout"
  end
  if kind == "attempt" then
    local _, state = again(task, "timeout", limit_at)
    local why = string.match(task.on_timeout or "", "^fail: (.+)")
    over.fields = state and {"retry_state", state} or why and {"retry_error", why}
  end
  return over
end
