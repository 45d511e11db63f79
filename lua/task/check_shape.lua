-- check_shape checks a shape: the fields that several tasks of one call share. It records what is wrong with the names
-- (bad_name) and with the other fields (bad_field). If nothing is, it applies the defaults of the kind.
--
-- @use check/fields
-- @use check/names
-- @use check/pairs_of_fields
-- @use task/defaults
-- @use task/apply_defaults
local function check_shape(tx, shape)
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
  if not field then
    field, why = pairs_of_fields(f, defaults(tx, f.kind))
  end
  if field then
    shape.bad_field = {"INVALID", string.sub(field, 1, 128), why} -- repeated in the answer of each task
    return
  end
  shape.warns = f.warn_percent
  apply_defaults(tx, f, shape.none)
end
