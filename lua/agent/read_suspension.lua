-- read_suspension reads the arguments of a suspend (call/suspend.lua lists them).
--
-- Returns  {id, epoch, worker, call, wait, members, note, children, kinds}; field and why say what is
--          wrong with the wait
--
-- @use check/names
-- @use check/number
-- @use task/read_tasks
-- @use agent/read_note
local function read_suspension(argv)
  local s = {id = argv[1], epoch = argv[2], worker = argv[3], call = names.word("call", argv[4]), members = {},
    wait = {mask = "obbbb", on_pending = "cancel", on_losers = "keep", from = "registered", part = "1", of = "1", most = "10000",
      label = "", mode = "all"}}
  local given = {}
  local n = number(argv, 5, 2, "fields of the wait")
  for i = 6, 5 + 2 * n, 2 do
    local name, value = argv[i], argv[i + 1]
    if given[name] then
      s.field, s.why = name, "is given twice"
    end
    given[name] = true
    if name ~= "mode" or value ~= "" then
      s.wait[name] = value
    end
  end
  local i = 6 + 2 * n
  n = number(argv, i, 3, "members")
  for j = i + 1, i + 3 * n, 3 do
    s.members[#s.members + 1] = {id = argv[j], patience = argv[j + 1] ~= "" and argv[j + 1] or nil,
      mask = argv[j + 2] ~= "" and argv[j + 2] or nil}
  end
  local rest
  s.note, rest = read_note(argv, i + 1 + 3 * n)
  s.children, s.kinds = read_tasks(argv, rest)
  return s
end
