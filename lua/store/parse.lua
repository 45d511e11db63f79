-- parse reads the two texts of a task. All values are strings. A value that is absent is false or nil.
--
--   spec   kind queue created_at deadline_at until        state  status epoch worker started_at retries completed_at call
--          name=value, or name:length of a text                  the same
--          (an empty line)                                       (an empty line)
--          the texts, then the payload                           the texts, then the result or error
--
-- "-" means an absent word. A task without a state is PENDING.
--
-- Returns the task, or nil and why the texts cannot be read
--
-- @use store/names
local ended = {COMPLETED = true, FAILED = true, CANCELLED = true}
local live = {PENDING = true, RUNNING = true, WAITING = true}

-- read_head reads the lines of a text from a position on, and the texts after them. It returns the position
-- after the texts, or nil if they cannot be read. found.names gets the known names. Other names, which a newer version
-- wrote, are kept in found, each as {name, sign, value}.
local function read_head(task, text, from, found)
  local stop = string.find(text, "\n\n", from, true)
  local body = stop and stop + 2
  for name, sign, value in string.gmatch(stop and string.sub(text, from, stop) or "", "([%w_]+)([=:])([^\n]*)\n") do
    if sign == ":" then
      local length = string.find(value, "^%d+$") and tonumber(value)
      if not length or body + length - 1 > #text then
        return nil
      end
      value = string.sub(text, body, body + length - 1)
      body = body + length
    elseif names.numbers[name] and not string.find(value, "^%d+$") then
      return nil
    end
    if names.known[name] then
      task[name] = value
      found.names[#found.names + 1] = name
    else
      found[#found + 1] = {name, sign, value}
    end
  end
  return body
end

local function parse(id, spec, state)
  local kind, queue, created, deadline, bound, place = string.match(spec, "^(%S+) (%S+) (%d+) ([%d-]+) ([%d-]+)\n()")
  if not kind then
    return nil, "its spec cannot be read"
  end
  local task = {id = id, spec = spec, payload_from = false, kind = kind, queue = queue, created_at = created,
    deadline_at = deadline ~= "-" and deadline, ["until"] = bound ~= "-" and bound, status = "PENDING", epoch = false,
    worker = false, started_at = false, retries = false, completed_at = false, call = false, rich = false, changed = false, unknown = false}
  task.payload_from = string.byte(spec, place) == 10 and place + 1 or read_head(task, spec, place, {names = {}})
  if state then
    local status, epoch, worker, started, retries, completed, call, rest =
      string.match(state, "^(%u+) ([%d-]+) (%S+) ([%d-]+) ([%d-]+) ([%d-]+) (%S+)\n()")
    if not live[status] and not ended[status] then
      return nil, "its state cannot be read"
    end
    task.status, task.epoch, task.worker = status, epoch ~= "-" and epoch, worker ~= "-" and worker
    task.started_at, task.retries = started ~= "-" and started, retries ~= "-" and retries
    task.completed_at, task.call = completed ~= "-" and completed, call ~= "-" and call
    local body, found = rest + 1, nil
    if string.byte(state, rest) ~= 10 then
      found = {names = {}}
      body = read_head(task, state, rest, found)
      task.rich, task.unknown = found.names, found[1] and found
    end
    if not body then
      return nil, "its state cannot be read"
    elseif ended[status] and not task.body_bytes then
      task[status == "COMPLETED" and "result" or "error"] = string.sub(state, body)
    end
  end
  if not task.payload_from then
    return nil, "its spec cannot be read"
  end
  return task
end
