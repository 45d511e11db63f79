-- earlier_part returns what earlier parts of the wait have counted: c, in which this part continues. If this is not the
-- next part, it returns nil and an answer.
--
--   ok, bad, settled    counters                    names    of members that this part counts
--   size, members       how many so far, and their names, with spaces between them
--   longest             of the members' spans       last     whether this is the last part
--   recounted           ignore the stored list of ended members
--   need_ok, most_bad, all, total, ends             set later: thresholds, number of members, and the limit
local function earlier_part(tx, s, task)
  local w = s.wait
  local c = {ok = 0, bad = 0, settled = 0, size = 0, longest = 0, members = "", names = {}, last = w.part == w.of}
  if w.part == "1" then
    c.recounted = true -- the stored list belongs to another wait
    return c
  end
  local f = redis.call("HMGET", tx.key.wait .. s.id, "state", "entry", "epoch", "part", "ok", "bad", "settled", "size", "longest",
    "members", "digest")
  if f[1] ~= "forming" or f[2] ~= w.entry or f[3] ~= task.epoch or tonumber(f[4]) ~= w.part - 1 or f[11] ~= w.digest then
    return nil, {"INVALID", "part", "must follow the part before it: begin again with part 1"}
  end
  c.ok, c.bad, c.settled, c.size = tonumber(f[5]), tonumber(f[6]), tonumber(f[7]), tonumber(f[8])
  c.longest, c.members = tonumber(f[9]), f[10]
  return c
end
