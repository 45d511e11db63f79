-- same_figures reports whether two ends add the same to the figures. So many tasks that were made together and end
-- together cost little more than one of them.
local function same_figures(a, b)
  return a.completed_at == b.completed_at and a.created_at == b.created_at and a.deadline_at == b.deadline_at and
    a.status == b.status and a.reason == b.reason and a.timeout_type == b.timeout_type and a.on_deadline == b.on_deadline and
    a.kind == b.kind and a.queue == b.queue and a.node == b.node and not a.under_way and not b.under_way and not a.children and not b.children
end
