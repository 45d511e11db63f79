-- root reads what a script may need of the partition's root, once a call.
local function root(k)
  if not k.level then
    local state = redis.call("HMGET", k.root, "events", "seq", "front")
    k.level = state[1] or "terminal"
    k.seq, k.front = tonumber(state[2] or 0), tonumber(state[3] or 0)
  end
end
