-- read: what is stored of tasks. It changes nothing: a task whose time is up but
-- whose end is not written yet is reported as it is, and as overdue.
--
-- KEYS[1]  root of the partition
-- ARGV     ids
--
-- Returns  {now, {overdue, payload, name, value, …}, …}: overdue is 1 or 0; an
--          empty list where there is no such task
-- Flags    no-writes
--
-- @include keys
-- @include now
-- @include live
-- @include ending

local k, at = keys(KEYS[1]), now()
local answers = {at}
for n, id in ipairs(ARGV) do
  local flat = redis.call("HGETALL", k.task .. id)
  local answer = {}
  if #flat > 0 then
    local task = {id = id}
    for i = 1, #flat, 2 do
      task[flat[i]] = flat[i + 1]
    end
    answer[1] = live(task) and ending(k, task, at) and 1 or 0
    answer[2] = redis.call("GET", k.payload .. id) or ""
    for i = 1, #flat do
      answer[i + 2] = flat[i]
    end
  end
  answers[n + 1] = answer
end
return answers
