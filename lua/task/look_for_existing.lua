-- look_for_existing checks whether any of a call's tasks exists already. Usually none does, and one EXISTS on all of
-- their keys shows that.
--
-- @use store/record
local function look_for_existing(tx, tasks)
  local keys, ids = {}, {}
  for n, task in ipairs(tasks) do
    ids[n] = task.id
    keys[2 * n - 1], keys[2 * n] = tx.key.spec .. task.id, tx.key.state .. task.id
  end
  tx.some_exist = keys[1] and redis.call("EXISTS", unpack(keys)) > 0
  if tx.some_exist then
    record.load(tx, ids)
  end
end
