-- The arguments of the call suspend.
--
-- @use agent/note: read_note
-- @use check/values: digits, names, number
-- @use task/enqueue: read_tasks

local wait_fields = {entry = true, mode = true, need = true, digest = true, label = true, limit_ms = true, from = true,
  on_timeout = true, on_pending = true, on_losers = true, mask = true, most = true, why = true, part = true, of = true}

local words = {
  on_pending = {cancel = true, keep = true, rule = "cancel or keep"},
  on_losers = {cancel = true, keep = true, rule = "cancel or keep"},
  on_timeout = {fail = true, proceed_with_available = true, rule = "fail or proceed_with_available"},
}

-- span reports whether a text is a whole number of ms from 1.
local function span(text)
  return digits(text) and string.find(text, "^[1-9]") ~= nil
end

local function check_fields(w)
  for name, value in pairs(w) do
    if not wait_fields[name] then
      return string.sub(name, 1, 128), "is not a field of a wait"
    elseif words[name] and (value == "rule" or not words[name][value]) then
      return name, "must be " .. words[name].rule
    end
  end
  for _, name in ipairs({"entry", "digest"}) do
    if not w[name] then
      return name, "is required"
    end
  end
  for _, name in ipairs({"entry", "need", "part", "of", "most"}) do
    if w[name] and not digits(w[name]) then
      return name, "must be a whole number"
    end
  end
  if string.sub(w.entry, 1, 1) == "0" then
    return "entry", "must be a whole number from 1, without a 0 in front"
  elseif not span(w.part) or not span(w.of) or tonumber(w.part) > tonumber(w.of) then
    return "part", "must be a whole number from 1 to of, without a 0 in front"
  elseif #w.digest > 1024 or string.find(w.digest, "%s") or w.digest == "" then
    return "digest", "must be one word of up to 1024 bytes"
  elseif string.find(w.label, "\n", 1, true) then
    return "label", "must be one line"
  elseif w.why and #w.why > 1024 then
    return "why", "has " .. #w.why .. " bytes, and the limit is 1024"
  elseif w.from ~= "registered" and w.from ~= "first" and not digits(w.from) then
    return "from", "must be registered, first, or an instant in ms"
  elseif w.limit_ms and w.limit_ms ~= "computed" and not span(w.limit_ms) then
    return "limit_ms", "must be a whole number from 1, or computed"
  end
end

-- check_wait checks the fields of a wait. It returns the invalid field and the error, or nil.
local function check_wait(s)
  local field, fault = s.field, s.fault
  if not field then
    field, fault = check_fields(s.wait)
  end
  if field then
    return field, fault
  elseif #s.members > 1000 then
    return "members", "are " .. #s.members .. ", and a call takes 1000: send them in parts"
  end
  local masks = {[s.wait.mask] = true}
  for _, m in ipairs(s.members) do
    masks[m.mask or s.wait.mask] = true
    if m.patience and not span(m.patience) then
      return "patience", "must be a whole number from 1"
    end
  end
  for mask in pairs(masks) do
    if not string.find(mask, "^[obn][obn][obn][obn][obn]$") then
      return "mask", "must be five letters, each of them o, b or n"
    end
  end
end

-- read_suspension reads the arguments of a suspend (call/suspend.lua lists them).
--
-- Returns  {id, epoch, worker, call, wait, members, note, children, kinds}, with field and fault if a field of the wait
--          is given twice
local function read_suspension(argv)
  local s = {id = argv[1], epoch = argv[2], worker = argv[3], call = names.word("call", argv[4]), members = {},
    wait = {mask = "obbbb", on_pending = "cancel", on_losers = "keep", from = "registered", part = "1", of = "1", most = "10000",
      label = "", mode = "all"}}
  local given = {}
  local n = number(argv, 5, 2, "fields of the wait")
  for i = 6, 5 + 2 * n, 2 do
    local name, value = argv[i], argv[i + 1]
    if given[name] then
      s.field, s.fault = name, "is given twice"
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
