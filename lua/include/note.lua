-- note writes what noted.lua has read. A checkpoint takes the place of everything before.
--
-- A request that was given up may come late, when its repeat has been answered long ago
-- and the agent has gone on. So a checkpoint that is there, or that a later one has
-- replaced, is not made again, and what is before the one there is stays forgotten.
--
-- The limit of a wait that comes after it outlives it: an attempt that makes the checkpoint
-- anew does not get more time for the same wait.
--
-- @include remember
local function note(k, task, taken)
  local there = redis.call("HMGET", k.journal .. task.id, "entries", "state", "until")
  local past = tonumber(there[1]) or -1
  local made = taken.made or {}
  local entries = tonumber(made.entries) or 0
  if taken.checkpoint and (entries > past or entries == past and made.state ~= there[2]) then
    past = entries
    redis.call("DEL", k.journal .. task.id)
    redis.call("HSET", k.journal .. task.id, unpack(taken.checkpoint))
    if there[3] and tonumber(string.match(there[3], "^%d+")) > entries then
      redis.call("HSET", k.journal .. task.id, "until", there[3])
    end
    if not task.journal then
      redis.call("HSET", k.task .. task.id, "journal", "1")
      task.journal = "1"
    end
  end
  local fresh = {}
  for _, entry in ipairs(taken.entries) do
    if entry[1] > past then
      fresh[#fresh + 1] = entry
    end
  end
  remember(k, task, fresh)
end
