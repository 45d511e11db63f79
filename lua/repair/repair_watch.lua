-- repair_watch puts an agent on the clock of waits at the next instant of its wait, and removes any other task. An agent
-- whose wait has fired is due at once: the sweep wakes it.
--
-- @use repair/mend
-- @use agent/nearest_patience
-- @use wait/read_wait
local function repair_watch(tx, r, task)
  local w = task.status == "WAITING" and read_wait(tx, task.id)
  if not w then
    if task.status ~= "WAITING" then
      mend.must(tx, r, "waits", task.id)
    end
  elseif w.state == "open" then
    local first, patience = w.ends, nearest_patience(tx, task.id)
    if patience and not (first and first <= patience) then
      first = patience
    end
    mend.must(tx, r, "waits", task.id, first)
  elseif not mend.has(tx, "waits", task.id) then
    mend.must(tx, r, "waits", task.id, tx.at - 1)
  end
end
