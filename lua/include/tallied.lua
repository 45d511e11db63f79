-- tallied writes what tally has counted: one command a wait and not one an end, since a
-- batch ends many members of one wait. Who reads a wait calls it first.
--
-- @include shield

local function put_down(k, parent, c)
  for i = 1, #c.names, 4000 do
    redis.call("RPUSH", k.settled .. parent, unpack(c.names, i, math.min(i + 3999, #c.names)))
  end
  if c.winner then
    redis.call("HSET", k.wait .. parent, "ok", c.ok, "bad", c.bad, "settled", c.settled,
      "state", c.state, "reason", c.reason, "winner", c.winner)
  else
    redis.call("HSET", k.wait .. parent, "ok", c.ok, "bad", c.bad, "settled", c.settled)
  end
end

local function tallied(k, at)
  for parent, known in pairs(k.kin) do
    if known.wait and known.wait.names[1] then
      shield(k, parent, at, put_down, k, parent, known.wait)
    end
  end
  k.kin = {}
end
