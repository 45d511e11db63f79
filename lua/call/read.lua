-- read: reports what is stored of tasks. It changes nothing: a task whose end is decided and not yet written is
-- reported as it is stored, and as overdue.
--
-- ARGV     ids, up to 500
--
-- Returns  {now, {overdue, payload, name, value, …}, …}: overdue is 1 or 0; the list is empty if there is no such
--          task. After 4 MiB the reply ends: request the other ids again. A record that cannot be read raises
--          "BROKEN id: why"
-- Flags    no-writes
--
-- @use store/record
-- @use store/state: live
-- @use store/tx: begin_read
-- @use task/body: describe, payload
-- @use task/ending

local function read_one(tx, id)
  local task, fault = record.get(tx, id)
  if not task then
    error("BROKEN " .. id .. ": " .. fault, 0)
  elseif not task.status then
    return {}, 0
  end
  local overdue, text = live(task) and ending(tx, task) and 1 or 0, payload(tx, task) or ""
  local words, size = describe(tx, task), #text
  for _, word in ipairs(words) do
    size = size + #word
  end
  return {overdue, text, unpack(words)}, size
end

local function read(keys, argv)
  local tx, answers, size = begin_read(keys[1]), {}, 0
  if #argv > 500 then
    error("a call takes up to 500 ids", 0)
  end
  record.load(tx, argv)
  answers[1] = tx.at
  for n, id in ipairs(argv) do
    if size > 4194304 then
      break
    end
    local bytes
    answers[n + 1], bytes = read_one(tx, id)
    size = size + bytes
  end
  return answers
end
