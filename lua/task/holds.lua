-- holds reports whether a claim can still settle its task. A worker that lost its lease can settle until
-- another worker claims the task.
--
-- If Redis never lost writes, the epoch would be enough. A failover can lose a claim, and the next claim
-- then gets the same epoch; so the worker's name is compared too.
local function holds(task, epoch, worker)
  return task.epoch == epoch and
    (task.status == "RUNNING" and task.worker == worker or task.status == "PENDING" and task.lost_by == worker)
end
