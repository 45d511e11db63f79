-- enqueue_all creates tasks, or finds those that exist already.
--
-- Returns an answer for each (call/enqueue.lua); of a task that was found, {"OK" or "KNOWN", id, deadline_at}
--
-- @use task/adopt
-- @use task/look_for_existing
-- @use task/plan
local function enqueue_all(tx, tasks)
  local answers = {}
  look_for_existing(tx, tasks)
  for n, task in ipairs(tasks) do
    local answer, d, parent = plan(tx, task)
    if not answer then
      adopt(tx, task, d, parent)
      answer = d.deadline_at or ""
    end
    answers[n] = answer
  end
  return answers
end
