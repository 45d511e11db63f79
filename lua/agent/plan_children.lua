-- plan_children checks the children that the agent wants to make. It returns those that are new, each {task, draft},
-- or nil and an answer if one is refused.
--
-- @use task/look_for_existing
-- @use store/owner
-- @use task/plan
local function plan_children(tx, s)
  local children, twice = {}, {}
  look_for_existing(tx, s.children)
  for n, child in ipairs(s.children) do
    local refusal, d = plan(tx, child)
    if refusal and refusal[1] ~= "OK" then
      return nil, {"CHILD", n, unpack(refusal)}
    elseif owner(child.id) ~= s.id then
      return nil, {"FOREIGN", string.sub(child.id, 1, 1024)}
    elseif twice[child.id] then
      return nil, {"CHILD", n, "INVALID", "id", "is given twice"}
    end
    twice[child.id] = true
    if d then
      children[#children + 1] = {task = child, draft = d}
    end
  end
  return children
end
