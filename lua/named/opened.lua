-- opened raises an error unless the namespace was opened, and has a version that this library supports. Functions that
-- read nothing of the root call it.
--
-- @use store/begin
-- @use store/read_root
local function opened(root)
  read_root(begin(root))
end
