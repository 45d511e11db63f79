-- watch: somebody waits for tasks to end. Their ends are told on the channel
-- `ended`, which a task that nobody watches does not bother.
--
-- KEYS[1]  root of the partition
-- ARGV     ids
--
-- Returns  {now, {status, instant}, …}: when its time is up, or the next thing that may
--          end it, whichever is first, "" for never; "" for a status where there is no such task
-- Ends     what is late among them
-- Flags    allow-oom        who waits must learn of the end on a full Redis too
--
-- @include keys
-- @include now
-- @include overdue
-- @include live
-- @include nearest
-- @include guard
-- @include flush
-- @include complete

local k, at = keys(KEYS[1]), now()

local function look(id)
  local task = overdue(k, id, at)
  if live(task) and not task.watched then
    redis.call("HSET", k.task .. id, "watched", "1")
  end
  local final = tonumber(task["until"] or task.deadline_at)
  local next = task.role == "timer" and tonumber(task.available_at) or nearest(task)
  if next and not (final and final <= next) then
    final = next
  end
  return {task.status or "", final and string.format("%d", final) or ""}
end

local answers = {at}
for _, id in ipairs(ARGV) do
  answers[#answers + 1] = guard(k, id, at, look, id) or {"BROKEN", ""}
end
complete(flush(k, at))
return answers
