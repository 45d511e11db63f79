-- idempotency keeps which task each idempotency key belongs to: the id of the task, and the digest of its kind and
-- payload.
--
-- @use store/attempt
-- @use store/alarm
-- @use store/index
-- @use store/later
-- @use store/own
local idempotency = {}

function idempotency.digest(kind, payload)
  return redis.sha1hex(kind .. "\n" .. payload)
end

-- holder returns the id that a key leads to, even if the time of the key is up.
function idempotency.holder(tx, key)
  return string.match(tx.keyed[key] or redis.call("HGET", tx.key.idem, key) or "", "^(%S+)")
end

-- find returns the id and the digest that a key holds, or nil if the key is free. If the key cannot be read, it
-- returns nil, nil and why. A key whose time is up is free, even before the sweep removes it.
function idempotency.find(tx, key)
  local held = tx.keyed[key]
  if held == nil then
    held = attempt("HGET", tx.key.idem, key)
    local score = attempt("ZSCORE", tx.key.forget, key)
    if type(held) == "table" or type(score) == "table" then
      return nil, nil, held and held.err or score.err
    end
    local forgotten = tonumber(held and score or nil)
    own(tx, "keyed")[key] = held
    if forgotten and forgotten <= tx.at then
      index.remove(tx, tx.key.forget, key)
      idempotency.free(tx, key)
    end
    held = tx.keyed[key]
  end
  if held then
    return string.match(held, "^(%S+) (%x+)$")
  end
end

-- keep gives a key to a task: for `window` ms, or without a limit if window is nil.
function idempotency.keep(tx, key, id, digest, window)
  own(tx, "keyed")[key] = id .. " " .. digest
  later.before(tx, "HSET", tx.key.idem, key, tx.keyed[key])
  if window then
    index.add(tx, tx.key.forget, string.format("%d", tx.at + window), key)
    alarm.note(tx, tx.at + window)
  end
end

function idempotency.free(tx, key)
  own(tx, "keyed")[key] = false
  later.before(tx, "HDEL", tx.key.idem, key)
end
