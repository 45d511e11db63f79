-- names checks names of kinds and queues, and words. It returns the field that is wrong and why, or nil.
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

-- word raises an error unless a text is one word: the first line of a record will contain it.
function names.word(what, text)
  if not text or #text > 640 or not string.find(text, "^%w[%w%p]*$") then
    error("the " .. what .. " must be one word of up to 640 bytes that begins with a letter or digit", 0)
  end
  return text
end
