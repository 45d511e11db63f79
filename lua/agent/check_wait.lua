-- check_wait checks the fields of a wait. It returns the field that is wrong and why, or nil.
--
-- @use check/digits
local known = {entry = true, mode = true, need = true, digest = true, label = true, limit_ms = true, from = true,
  on_timeout = true, on_pending = true, on_losers = true, mask = true, most = true, why = true, part = true, of = true}

local words = {
  on_pending = {cancel = true, keep = true, says = "cancel or keep"},
  on_losers = {cancel = true, keep = true, says = "cancel or keep"},
  on_timeout = {fail = true, proceed_with_available = true, says = "fail or proceed_with_available"},
}

-- span reports whether a text is a whole number of ms from 1.
local function span(text)
  return digits(text) and string.find(text, "^[1-9]") ~= nil
end

local function check_fields(w)
  for name, value in pairs(w) do
    if not known[name] then
      return string.sub(name, 1, 128), "is not a field of a wait"
    elseif words[name] and (value == "says" or not words[name][value]) then
      return name, "must be " .. words[name].says
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

local function check_wait(s)
  local field, why = s.field, s.why
  if not field then
    field, why = check_fields(s.wait)
  end
  if field then
    return field, why
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
