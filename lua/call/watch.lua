-- watch: a client waits for tasks to end. The call marks the tasks, so that their ends are published on the
-- channel `ended`. Ends of other tasks are not published.
--
-- ARGV     ids, up to 500
--
-- Returns  {now, {status, instant}, …}: instant is when its time is up, or when a limit, a warning or a grace is
--          due, if that is sooner; of a timer, when it fires; "" for never. status is "" if there is no such task.
--          {"BROKEN", why} if its record cannot be read
-- Ends     tasks among them that must end: timers COMPLETED, FAILED if their time was up, else CANCELLED
-- Flags    allow-oom        a client must learn of the end on a full Redis too
--
-- @use store/record
-- @use store/state: final, live, nearest
-- @use store/tell: answer
-- @use store/tx: begin, read_root
-- @use task/finish: load_task
-- @use unit/unit

local function look(tx, id)
  local task, fault = load_task(tx, id)
  if not task then
    return {"BROKEN", fault}
  elseif live(task) then
    record.set(tx, task, "watched", "1")
  end
  local last = final(task)
  local next = task.role == "timer" and tonumber(task.available_at) or nearest(task)
  if next and not (last and last <= next) then
    last = next
  end
  return {task.status or "", last and string.format("%d", last) or ""}
end

local function look_at_all(tx, ids)
  local answers = {tx.at}
  record.load(tx, ids)
  for n, id in ipairs(ids) do
    tx.on = id
    answers[n + 1] = look(tx, id)
  end
  return answers
end

local function watch(keys, argv)
  if #argv > 500 then
    error("a call takes up to 500 ids", 0)
  end
  local tx = read_root(begin(keys[1]))
  return answer(tx, unit(tx, look_at_all, argv))
end
