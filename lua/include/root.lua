-- root reads what a script may need of the partition's root, once a call. Where it
-- cannot be read the defaults hold, and flush tells.
--
-- @include write
local function root(k)
  if not k.level then
    local state = write(k, "HMGET", k.root, "events", "seq", "front")
    if state == 0 then
      state = {}
    end
    k.level = state[1] or "terminal"
    k.seq, k.front = tonumber(state[2] or 0), tonumber(state[3] or 0)
  end
end
