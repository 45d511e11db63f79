-- note_late counts an outcome that came after its task had timed out. The record keeps the last call that was late, so
-- that a repeat of this call does not count again.
--
-- @use store/record
-- @use store/tally
local function note_late(tx, task, call)
  if tx.root.figures and task.timed_out and task.late_by ~= call then
    record.set(tx, task, "late_by", call)
    tally.add(tx, task, " late")
  end
end
