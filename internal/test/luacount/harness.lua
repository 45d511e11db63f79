-- The process of a Counter: it loads the library, runs its functions with a hook on each instruction, and counts.
--
-- stdin and stdout are a connection to a redis-server, which redis.call uses. File 3 has the requests of the Counter, and
-- file 4 gets the answers. Both are lists of words: the number of words on a line, then for each its length on a line, and
-- its bytes.
--
--   load     the text of the library                       "OK"
--   time     ms                                            "OK"
--   run      function, number of keys, keys and arguments  "OK", the reply as an expression
--   count    as for run                                    as for run, then for each place six words:
--            the first line of the function in the library, the line, the C function that it calls or "", instructions,
--            calls and bytes
--   A request that fails: "ERR", the error.
assert(_VERSION == "Lua 5.1" and not jit, "this is not Lua 5.1: the counts would differ")
local requests, answers = assert(io.open("/dev/fd/3", "rb")), assert(io.open("/dev/fd/4", "wb"))
local functions, clock = {}, 0
local hook, counting
local steps, uses = {}, {} -- by line, and by line and C function: the six words of a place

-- count adds to the work of a line, or of a C function that it calls.
local function count(at, c, instructions, calls, bytes)
  local first, line = at.linedefined, at.currentline
  if at.source ~= "@user_function" then
    first, line = 0, 0
  end
  local key, works = first * 1000000 + line, steps
  if c ~= "" then
    works = uses[c] or {}
    uses[c] = works
  end
  local work = works[key]
  if not work then
    work = {first, line, c, 0, 0, 0}
    works[key] = work
  end
  work[4], work[5], work[6] = work[4] + instructions, work[5] + calls, work[6] + bytes
end

-- source returns a value as an expression in Lua. It is a text because scripts for Redis contain it too.
local source_text = [[
local function source(value)
  local kind = type(value)
  if kind == "string" then
    return string.format("%q", value)
  elseif kind == "number" then
    return value == math.huge and "1/0" or value == -math.huge and "-1/0" or value ~= value and "0/0" or string.format("%.17g", value)
  elseif kind == "table" then
    local parts = {}
    for k, v in pairs(value) do
      parts[#parts + 1] = "[" .. source(k) .. "]=" .. source(v)
    end
    return "{" .. table.concat(parts, ",") .. "}"
  elseif kind == "userdata" then
    return "cjson.null"
  end
  return tostring(value)
end
]]
local source = assert(loadstring(source_text .. "return source"))()

-- weight returns the bytes of the strings in a value.
local function weight(value)
  local sum = type(value) == "string" and #value or 0
  if type(value) == "table" then
    for k, v in pairs(value) do
      sum = sum + weight(k) + weight(v)
    end
  end
  return sum
end

-- The connection to Redis.

local function send(words)
  local parts = {"*" .. #words .. "\r\n"}
  for i, word in ipairs(words) do
    local text = type(word) == "number" and string.format("%.17g", word) or word
    assert(type(text) == "string", "an argument of redis.call is no string and no number")
    parts[i + 1] = "$" .. #text .. "\r\n" .. text .. "\r\n"
  end
  io.write(table.concat(parts))
  io.flush()
end

-- receive returns a reply as redis.call returns it. An error is a table with the field err.
local function receive()
  local line = assert(io.read("*l"), "the redis-server has closed the connection")
  local kind, rest = string.sub(line, 1, 1), string.sub(line, 2, -2)
  if kind == "+" then
    return {ok = rest}
  elseif kind == "-" then
    return {err = rest}
  elseif kind == ":" then
    return tonumber(rest)
  end
  local n = tonumber(rest)
  if n < 0 then
    return false
  elseif kind == "$" then
    return (string.sub(io.read(n + 2), 1, n))
  end
  local list = {}
  for i = 1, n do
    list[i] = receive()
  end
  return list
end

-- ask runs one command of a script. It replaces the clock of the server, on which the length of an event's id depends too: a
-- second event of the same ms is 1, and the eleventh 10.
local function ask(words)
  local command = string.upper(words[1])
  if command == "TIME" then
    return {string.format("%d", clock / 1000), string.format("%d", clock % 1000 * 1000)}
  elseif command == "XADD" then
    for i, word in ipairs(words) do
      if word == "*" then
        words[i] = string.format("%d-*", clock)
        break
      end
    end
  end
  send(words)
  return receive()
end

-- resume sets the hook if the call is counted. Functions that serve a call suspend it, so that it does not slow them down.
local function resume()
  if counting then
    debug.sethook(hook, "cr", 1)
  end
end

local function command(name)
  return function(...)
    debug.sethook()
    local words = {...}
    local bytes, reply = weight(words), ask(words)
    count(debug.getinfo(2, "Sl"), name, 0, 1, bytes + weight(reply))
    resume()
    if name == "redis.call" and type(reply) == "table" and reply.err then
      error(reply, 0)
    end
    return reply
  end
end

-- on_server returns a C function of Redis that Lua 5.1 lacks. The server runs it, in a script.
local function on_server(name)
  local script = source_text .. "return source({pcall(" .. name .. ", unpack(loadstring(ARGV[1])()))})"
  return function(...)
    debug.sethook()
    local words = {...}
    send({"EVAL", script, 0, "return " .. source(words)})
    local reply = receive()
    assert(type(reply) == "string", type(reply) == "table" and reply.err or name)
    local results = loadstring("return " .. reply)()
    count(debug.getinfo(2, "Sl"), name, 0, 1, weight(words) + weight(results))
    resume()
    if not results[1] then
      error(results[2], 0)
    end
    return unpack(results, 2)
  end
end

redis = {call = command("redis.call"), pcall = command("redis.pcall")}
cjson, bit = {null = newproxy()}, {}
for _, name in ipairs({"sha1hex", "acl_check_cmd", "error_reply", "status_reply"}) do
  redis[name] = on_server("redis." .. name)
end
for _, name in ipairs({"encode", "decode"}) do
  cjson[name] = on_server("cjson." .. name)
end
for _, name in ipairs({"bxor", "band", "bor", "bnot", "lshift", "rshift"}) do
  bit[name] = on_server("bit." .. name)
end

function redis.register_function(f)
  functions[f.function_name] = f.callback
end

-- The hook.

local names = {} -- of C functions
for prefix, library in pairs({[""] = _G, ["string."] = string, ["table."] = table, ["math."] = math}) do
  for name, f in pairs(library) do
    if type(f) == "function" then
      names[f] = prefix .. name
    end
  end
end
names[ipairs({})], names[pairs({})] = "ipairs iterator", "pairs iterator"

-- reads reports whether a C function reads the strings that it is given, or makes those that it returns. The others only pass
-- them on.
local function reads(name)
  return string.find(name, "^string%.") or name == "table.concat" or name == "tonumber" or name == "tostring" or name == "iterator"
end

-- strings returns how many values a C function has on its stack now, and the bytes of the strings behind the first `after`.
-- The last value is a table of the hook itself.
local function strings(after)
  local i, bytes = 1, 0
  while true do
    local name, value = debug.getlocal(3, i)
    if not name then
      return i - 2, bytes
    end
    if i > after and type(value) == "string" then
      bytes = bytes + #value
    end
    i = i + 1
  end
end

local given = {} -- by C function: the number of its arguments

function hook(event)
  local at = debug.getinfo(2, event == "count" and "Sl" or "Sf")
  if event == "count" then
    if at.source == "@user_function" then
      count(at, "", 1, 0, 0)
    end
    return
  end
  local from = at.what == "C" and debug.getinfo(3, "Sl")
  if not from or from.source ~= "@user_function" and from.what ~= "C" then
    return -- a function in Lua, or one that this file calls
  end
  local name, bytes = names[at.func] or "iterator", 0
  if event == "call" then
    given[at.func], bytes = strings(0)
    count(from, name, 0, 1, reads(name) and bytes or 0)
  elseif reads(name) then
    _, bytes = strings(given[at.func])
    count(from, name, 0, 0, bytes)
  end
end

-- The requests.

local function request()
  local n = requests:read("*n", "*l")
  if not n then
    os.exit(0)
  end
  local words = {}
  for i = 1, n do
    local length = requests:read("*n")
    requests:read(1)
    words[i] = length > 0 and requests:read(length) or "" -- read(0) waits for a further byte
  end
  return words
end

local function answer(words)
  answers:write(#words, "\n")
  for _, word in ipairs(words) do
    word = tostring(word)
    answers:write(#word, "\n", word)
  end
  answers:flush()
end

local serve = {}

function serve.load(text)
  assert(loadstring((string.gsub(text, "^#!", "--")), "@user_function"))()
  return {"OK"}
end

function serve.time(ms)
  clock = tonumber(ms)
  return {"OK"}
end

function serve.run(name, n, ...)
  local f, words = assert(functions[name], "Function not found"), {...}
  local keys, args = {unpack(words, 1, n)}, {unpack(words, n + 1)}
  resume()
  local reply = f(keys, args)
  debug.sethook()
  return {"OK", source(reply)}
end

function serve.count(...)
  steps, uses, given, counting = {}, {}, {}, true
  local out = serve.run(...)
  uses[""] = steps
  for _, works in pairs(uses) do
    for _, work in pairs(works) do
      for _, word in ipairs(work) do
        out[#out + 1] = word
      end
    end
  end
  return out
end

while true do
  local words = request()
  local ok, out = pcall(function() return serve[words[1]](unpack(words, 2)) end)
  debug.sethook()
  counting = false
  answer(ok and out or {"ERR", type(out) == "table" and out.err or tostring(out)})
end
