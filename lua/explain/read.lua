-- Reads that tolerate keys of the wrong type.

-- ask runs a command that reads. It returns false if the command fails, for example on a key of the wrong type, because an
-- explanation is needed most when something is broken.
local function ask(...)
  local answer = redis.pcall(...)
  if type(answer) == "table" and answer.err then
    return false
  end
  return answer
end

-- scored returns the score of a member of a clock as a whole number of ms, or nil. It is formatted here, because servers
-- format scores differently.
local function scored(key, member)
  local score = tonumber(ask("ZSCORE", key, member) or nil)
  return score and string.format("%d", score)
end

-- put adds a name and its value to a list, if there is a value.
local function put(list, name, value)
  if value then
    list[#list + 1] = name
    list[#list + 1] = value
  end
end

-- put_fields adds some fields of a hash to a list. It returns the fields by name.
local function put_fields(list, key, names)
  local values, fields = ask("HMGET", key, unpack(names)) or {}, {}
  for i, name in ipairs(names) do
    fields[name] = values[i] or nil
    put(list, name, fields[name])
  end
  return fields
end
