-- repair_kept sets when the record of an ended task goes, if nothing removes it. Its retention begins anew, since the
-- instant is lost. A live task, and a child whose owner lives, must stay.
--
-- @use task/drained
-- @use task/left_behind
-- @use store/live
-- @use store/owner_state
-- @use task/retention
-- @use repair/mend
local function repair_kept(tx, r, task)
  local id, dead = task.id, "dead:" .. task.queue
  if live(task) or owner_state(tx, task) and not left_behind(tx, task) then
    mend.must(tx, r, "retained", id)
    mend.must(tx, r, dead, id)
    return
  end
  if not mend.has(tx, "retained", id) then
    if task.owner and drained(tx, task.owner) then
      return -- the sweep comes to it
    end
    mend.must(tx, r, "retained", id, tx.at + retention(task))
  end
  mend.must(tx, r, dead, id, task.status ~= "COMPLETED" and task.completed_at)
end
