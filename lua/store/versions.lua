-- versions are those of the layout of records that this library works with: all from the oldest to the newest. A program
-- replaces the functions for other languages by its own only if its own work with all versions that theirs work with. (A
-- program finds this line in the text of a library, so it keeps its form.)
local versions = {oldest = 2, newest = 2}
