-- check_shape checks a shape: the fields that several tasks of one call share. It records what is wrong with the names
-- (bad_name) and with the other fields (bad_field). If nothing is, it applies the defaults of the kind.
--
--   child  whether the tasks have an owner
--
-- The promises and timers that agents and flows make for themselves take no defaults: users can have kinds with these names.
--
-- @use check/fields
-- @use check/names
-- @use check/pairs_of_fields
-- @use task/defaults
-- @use task/apply_defaults
local for_themselves = {sleep = true, promise = true, signal = true, ["flow/sleep"] = true, ["flow/wait"] = true}

local function check_shape(tx, shape, child)
  local f = shape.fields
  shape.checked = true
  local field, why = names.kind(f.kind)
  if not field then
    field, why = names.queue(f.queue)
  end
  if field then
    shape.bad_name = {"INVALID", field, why}
    return
  end
  field, why = shape.field, shape.why
  if not field then
    field, why = fields(f)
  end
  local of_kind = child and f.role and for_themselves[f.kind] and tx.none or defaults(tx, f.kind)
  if not field then
    field, why = pairs_of_fields(f, of_kind)
  end
  if field then
    shape.bad_field = {"INVALID", string.sub(field, 1, 128), why} -- repeated in the answer of each task
    return
  end
  shape.warns = f.warn_percent
  apply_defaults(tx, f, shape.none, of_kind)
end
