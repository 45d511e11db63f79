-- incarnation tells apart the tasks that have had one id, one after another: the id of a task with a name is used again, and a
-- client can give any id again. Each task has a number, which is greater than the number and every epoch of those before it. It
-- is the ms at which the task was made, unless the clock of Redis was set back since. Children and hooks store the number of
-- the task that they belong to. Instants are not compared for this: they can be equal, and go back.
local incarnation = {}

-- number returns the number of a task. The record has it if it is not created_at.
function incarnation.number(task)
  return task.number or task.created_at
end

-- first_epoch returns the epoch of a task's first claim: 1, and for a task with a name its number, so that epochs grow from
-- one task to the next: a claim of an earlier task does not hold a later one.
function incarnation.first_epoch(task)
  return string.find(task.id, "^%d+%-[ne]%-") and incarnation.number(task) or "1"
end

-- past notes that the record of a task goes: task/create.lua gives new tasks a greater number.
function incarnation.past(tx, task)
  local last = math.max(tonumber(incarnation.number(task)), tonumber(task.epoch or 0) or 0)
  if last >= (tx.number or tx.root.number) then
    tx.number = last + 1
  end
end

-- belongs reports whether a child or hook is of this task, and not of an earlier one with the same id. Records that a version
-- without numbers made have only their instants.
function incarnation.belongs(child, task)
  if child.of_number then
    return child.of_number == incarnation.number(task)
  end
  return tonumber(child.created_at) >= tonumber(task.created_at)
end
