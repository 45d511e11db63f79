-- newest reads an index from its newest entry on: a sorted set from the highest score, a list from its end.
--
--   behind  score and id of the entry behind which to begin; nil at the beginning. In a list, the score is the position
--   most    how many entries
--
-- Returns  ids, scores as texts, and whether there are more

-- before reports whether a text sorts before another, byte by byte. Redis sorts members of one score so; the operator
-- of Lua depends on the language of the server.
local function before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

-- rank_behind returns how many entries there are up to a score and an id, from the highest on. The entry itself
-- need not exist any more.
local function rank_behind(key, score, id)
  local low = redis.call("ZCOUNT", key, "(" .. score, "+inf")
  local high = low + redis.call("ZCOUNT", key, score, score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = redis.call("ZRANGE", key, middle, middle, "REV")[1]
    if not member or before(member, id) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

local function newest_of_set(key, behind, most)
  local from = behind and rank_behind(key, behind.score, behind.id) or 0
  local words = redis.call("ZRANGE", key, from, from + most, "REV", "WITHSCORES")
  local ids, scores = {}, {}
  for i = 1, math.min(most, #words / 2) do
    ids[i], scores[i] = words[2 * i - 1], words[2 * i]
  end
  return ids, scores, #words / 2 > most
end

-- The list of children loses its first entries when its owner drains. Then some entries are read twice.
local function newest_of_list(key, behind, most)
  local length = redis.call("LLEN", key)
  local last = math.min(behind and tonumber(behind.score) or length, length) - 1
  local first = math.max(last - most + 1, 0)
  local words = last >= 0 and redis.call("LRANGE", key, first, last) or {}
  local ids, scores = {}, {}
  for i = #words, 1, -1 do
    ids[#ids + 1], scores[#scores + 1] = words[i], string.format("%d", first + i - 1)
  end
  return ids, scores, first > 0
end

local function newest(key, is_list, behind, most)
  return (is_list and newest_of_list or newest_of_set)(key, behind, most)
end
