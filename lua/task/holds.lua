-- holds tells whether a claim may still settle its task. A worker that lost its lease may settle until
-- another worker takes the task.
--
-- The epoch alone would be enough if Redis never forgot. A failover may lose a claim, and the next claim
-- then gets the same epoch; so the worker's name is compared too.
local function holds(task, epoch, worker)
  return task.epoch == epoch and
    (task.status == "RUNNING" and task.worker == worker or task.status == "PENDING" and task.lost_by == worker)
end
