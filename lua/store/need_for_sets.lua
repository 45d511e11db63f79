-- need_for_sets checks the keys of all records and sets with one MSET, then ZADD and ZREM on one set each. If the MSET
-- is refused, it checks each key with its own command, to find what is lacking.
--
-- @use store/need
local function need_for_set(tx, gains, loses)
  if gains then
    need(tx, "ZADD", gains, "1", "x")
  end
  if loses then
    need(tx, "ZREM", loses, "x")
  end
end

local function need_for_sets(tx)
  local key, gains, loses = tx.key, nil, nil
  local words, n = {key.spec, "x", key.state, "x"}, 4
  for _, set in ipairs(tx.sets) do
    gains = set.news > 0 and set.key or gains
    loses = set.gone and set.key or loses
    words[n + 1], words[n + 2] = set.key, "x"
    n = n + 2
  end
  if not redis.acl_check_cmd("MSET", unpack(words, 1, math.min(n, 4000))) then
    need(tx, "MSET", key.spec, "x")
    need(tx, "MSET", key.state, "x")
    for _, set in ipairs(tx.sets) do
      need_for_set(tx, set.news > 0 and set.key, set.gone and set.key)
    end
  end
  need_for_set(tx, gains, loses)
end
