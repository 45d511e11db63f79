-- names are the patterns of names, and what is said of a text that does not match.
local names = {}

function names.kind(text)
  if not text or #text > 128 or not string.find(text, "^%w[%w._:/-]*$") then
    return "kind", "must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit"
  end
end

function names.queue(text)
  if not text or #text > 128 or not string.find(text, "^%w[%w._-]*$") then
    return "queue", "must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
  end
end

-- word raises unless a text is one word: it will stand in the first line of a record.
function names.word(what, text)
  if not text or #text > 640 or not string.find(text, "^%w[%w%p]*$") then
    error("the " .. what .. " must be one word of up to 640 bytes that begins with a letter or digit", 0)
  end
  return text
end
