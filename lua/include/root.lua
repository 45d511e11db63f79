-- root reads what a script may need of the partition's root, once a call: the level of
-- events, the line's next places, whether any queue is controlled (room.lua), and the
-- defaults of the kinds that the script names. Where it cannot be read the defaults
-- hold, and flush tells.
--
--   kinds  fields of the root, "kind:" and a kind each; nil for none
--
-- @include write
local function root(k, kinds)
  if not k.level then
    local state = write(k, "HMGET", k.root, "events", "seq", "front", "controlled", unpack(kinds or {}))
    if state == 0 then
      state = {}
    end
    k.level = state[1] or "terminal"
    k.seq, k.front = tonumber(state[2] or 0), tonumber(state[3] or 0)
    k.controlled = state[4]
    for i, field in ipairs(kinds or {}) do
      k.defaults[string.sub(field, 6)] = state[4 + i] or ""
    end
  end
end
