-- parcels formats the tasks that a worker claims. Each has five words: its id, its epoch, a text of four words
-- (limit_at, retries, lease_losses, journal; "-" for none), its spec (store/parse.lua), and its payload if the spec
-- does not include it.
local function parcels(got)
  local words, n = {}, 0
  for _, task in ipairs(got.tasks) do
    words[n + 1], words[n + 2] = task.id, task.epoch
    words[n + 3] = task.rich and (task.limit_at or "-") .. " " .. (task.retries or "-") .. " " .. (task.lease_losses or "-") ..
      " " .. (task.journal or "-") or "- " .. (task.retries or "-") .. " - -"
    words[n + 4] = task.spec
    words[n + 5] = got.payloads[task.id] or ""
    n = n + 5
  end
  return words
end
