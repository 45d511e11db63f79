-- mend compares what is stored beside the records with what the records say. What is wrong is put right at commit, and
-- added to r, a list of what repair does, in words.
--
--   name  a key without its root: deadlines, ready:mail
--
-- @use store/alarm
-- @use store/index
-- @use store/later
-- @use store/new_score
local mend = {}

function mend.key(tx, name)
  local kind, of = string.match(name, "^(%l+):?(.*)$")
  return tx.key[kind] .. of, of == ""
end

-- must gives a member of a sorted set its score, or removes it if the score is nil or false.
function mend.must(tx, r, name, member, score)
  local key, clock = mend.key(tx, name)
  local there = tonumber(new_score(tx, key, member))
  if score and there ~= tonumber(score) then
    index.add(tx, key, string.format("%d", score), member)
    r[#r + 1] = "add to " .. name
    if clock then
      alarm.note(tx, tonumber(score))
    end
  elseif there and not score then
    index.remove(tx, key, member)
    r[#r + 1] = "remove from " .. name
  end
end

function mend.has(tx, name, member)
  local key = mend.key(tx, name)
  return new_score(tx, key, member) ~= nil
end

-- drop deletes a key that must not exist.
function mend.drop(tx, r, name)
  local key = mend.key(tx, name)
  if redis.call("EXISTS", key) == 1 then
    later.drop(tx, key)
    index.forget(tx, key)
    r[#r + 1] = "delete " .. name
  end
end
